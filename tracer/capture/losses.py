"""What could not be kept, as the report says it: reason and cure."""

from __future__ import annotations

import struct
from pathlib import Path

from tracer.capture import kernel
from tracer.model.records import LossKind
from tracer.model.snapshot import Loss

_MORE_OBJECTS = "--max-objects"
_WORDS: dict[LossKind, tuple[str, str]] = {
    LossKind.LIVE_FULL: ("live allocation not kept: the map was full", _MORE_OBJECTS),
    LossKind.OBJECTS_FULL: ("live object not kept: the map was full", _MORE_OBJECTS),
    LossKind.EVENTS_FULL: ("event not kept: the ring was full", "--ring-size"),
    LossKind.STACKS_FULL: ("stack not stored: its ring was full", "--ring-size"),
    LossKind.TOTALS_FULL: ("totals of a stack not kept: too many different stacks", "--max-stacks"),
    LossKind.PENDING_FULL: ("call not followed: nested too deep", "none yet"),
    LossKind.PENDING_STALE: (
        "call that never returned (longjmp, an exception, or a return probe that the kernel missed)",
        "none: what it allocated is unknown",
    ),
    LossKind.THREADS_FULL: ("event of one thread too many", "--max-threads"),
    LossKind.PROCESSES_FULL: ("process not followed: too many", "--max-threads"),
    LossKind.CONTROL_FULL: ("process event not kept: the ring was full", "run refleak with a higher priority"),
    LossKind.HOLD_EXPIRED: ("a process ran on before its probes were in place", "run refleak with a higher priority"),
    LossKind.TYPES_FULL: ("type name not kept: too many types", "--type"),
    LossKind.UNWIND_REFUSED: ("event whose stack walk the kernel refused", "report it, with `refleak doctor`"),
    LossKind.GUESTS_FULL: ("stack without the frames of its interpreter: their ring was full", "none"),
    LossKind.RETURN_HIDDEN: (
        "return address that a probe had replaced when the program unwound its stack: its page could not be written",
        "--refs-only, or fewer specs",
    ),
    LossKind.ARGUMENT_UNREAD: ("argument that could not be read", "none: its page was not in memory"),
}


def _possible_cpus() -> int:
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().split(",")[-1]
    return int(last.rpartition("-")[2]) + 1


def read_losses(map_fd: int) -> dict[LossKind, int]:
    """Sum the kernel side's loss counters over the CPUs."""
    cpus = _possible_cpus()
    sums = {}
    for kind in LossKind:
        value = kernel.lookup_element(map_fd, struct.pack("<I", kind), 8 * cpus)
        sums[kind] = sum(struct.unpack(f"<{cpus}Q", value)) if value else 0
    return sums


def describe(counts: dict[LossKind, int]) -> tuple[Loss, ...]:
    """Return the losses that happened, as the report names them."""
    happened = ((_WORDS[kind], count) for kind, count in counts.items() if count)
    return tuple(Loss(reason, count, remedy) for (reason, remedy), count in happened)
