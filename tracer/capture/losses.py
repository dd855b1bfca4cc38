"""Losses of the BPF programs in the report's words: what could not be kept, the reason and the cure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from tracer.kernel import bpf
from tracer.model.records import LossKind
from tracer.model.snapshot import EVERY_KIND, Loss


class Losing(Protocol):
    """Whoever may be unable to keep something."""

    @property
    def losses(self) -> Iterable[Loss]:
        """Yield what could not be kept so far, as the report names it."""


_MORE_OBJECTS = "--max-objects"
_NOTHING: tuple[str, ...] = ()
_WORDS: dict[LossKind, tuple[str, str, tuple[str, ...]]] = {
    LossKind.LIVE_FULL: ("live allocation not kept: the map was full", _MORE_OBJECTS, _NOTHING),
    # An object that is deleted by its address is looked up in a map that may have been full.
    LossKind.OBJECTS_FULL: ("live object not kept: the map was full", _MORE_OBJECTS, ("reference",)),
    # Blocks and counts are kept in the kernel, mappings are made up of their events.
    LossKind.EVENTS_FULL: ("event not kept: the ring was full", "--ring-size", ("mapping",)),
    LossKind.STACKS_FULL: ("stack not stored: its ring was full", "--ring-size", _NOTHING),
    LossKind.TOTALS_FULL: ("totals of a stack not kept: too many different stacks", "--max-stacks", _NOTHING),
    LossKind.PENDING_FULL: ("call not followed: nested too deep", "none yet", ("reference", "allocation")),
    # A block is taken at the entry of what frees it, a reference may be given back at a return that never came.
    LossKind.PENDING_STALE: (
        "call that never returned (longjmp, an exception, or a return probe that the kernel missed)",
        "none: what it allocated is unknown", ("reference",),
    ),
    LossKind.THREADS_FULL: ("event of one thread too many", "--max-threads", EVERY_KIND),
    LossKind.PROCESSES_FULL: ("process not followed: too many", "--max-threads", EVERY_KIND),
    LossKind.CONTROL_FULL: (
        "process event not kept: the ring was full", "run refleak with a higher priority", EVERY_KIND
    ),
    # Its probes come one after the other: that of malloc may be in place before that of free.
    LossKind.HOLD_EXPIRED: (
        "a process ran on before its probes were in place", "--hold 20, or run refleak with a higher priority",
        EVERY_KIND,
    ),
    LossKind.TYPES_FULL: ("type name not kept: too many types", "--type", _NOTHING),
    LossKind.UNWIND_REFUSED: (
        "event whose stack walk the kernel refused", "report it, with `refleak doctor`", EVERY_KIND
    ),
    LossKind.RETURN_HIDDEN: (
        "return address that a probe had replaced when the program unwound its stack: its page could not be written",
        "--refs-only, or fewer specs", EVERY_KIND,
    ),
    LossKind.DEEP_BOUND: (
        "library loaded with RTLD_DEEPBIND: its calls pass the library of --preload by", "leave --preload out",
        ("allocation",),
    ),
    LossKind.GHOSTS_FULL: (
        "block that its maker freed after a fork not kept, of which a child may hold a copy: the map was full",
        _MORE_OBJECTS, ("allocation",),
    ),
    LossKind.SPACE_TOTALS_FULL: ("counts of a process not kept: too many", "--max-threads", _NOTHING),
    LossKind.INHERITED_FULL: (
        "free, by a child, of what its parent had made not kept: the map was full", _MORE_OBJECTS, _NOTHING
    ),
    LossKind.INTERPRETERS_FULL: ("stack without the frames of its interpreter: their ring was full", "none", _NOTHING),
    LossKind.ARGUMENT_UNREAD: (
        "argument that could not be read", "none: its page was not in memory", ("reference", "allocation")
    ),
}  # fmt: skip
"""Reason, cure, and what may seem to be alive because of it."""


def _possible_cpus() -> int:
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().split(",")[-1]
    return int(last.rpartition("-")[2]) + 1


def read_losses(map_fd: int) -> dict[LossKind, int]:
    """Sum the kernel side's loss counters over the CPUs."""
    return dict(zip(LossKind, read_counters(map_fd, len(LossKind)), strict=True))


def read_counters(map_fd: int, number: int) -> list[int]:
    """Sum the first counters of a map over the CPUs."""
    cpus = _possible_cpus()
    values = (bpf.lookup_element(map_fd, struct.pack("<I", index), 8 * cpus) for index in range(number))
    return [sum(struct.unpack(f"<{cpus}Q", value)) if value else 0 for value in values]


def describe(counts: dict[LossKind, int]) -> tuple[Loss, ...]:
    """Return the losses that happened, as the report names them."""
    happened = ((_WORDS[kind], count) for kind, count in counts.items() if count)
    return tuple(Loss(reason, count, remedy, hides) for (reason, remedy, hides), count in happened)
