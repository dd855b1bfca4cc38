"""Losses in the report's words: what could not be kept, the reason and the cure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import TooFewFiles
from tracer.kernel import bpf
from tracer.model.records import LossKind
from tracer.model.snapshot import EVERY_KIND, Loss

if TYPE_CHECKING:
    from tracer.capture.session import Session

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
        "a process ran on before its probes were in place", "run refleak with a higher priority", EVERY_KIND
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


def losses_of(session: Session) -> Iterator[Loss]:
    """Yield what a trace could not keep, here and on the kernel side."""
    yield from describe(read_losses(session.maps.fds["LOSSES"]))
    yield from session.mishaps.losses
    if passed_over := session.programs.passed_over:
        reason = "process event that the kernel did not hand over: it was preempted in another one"
        yield Loss(reason, passed_over, "run it again", EVERY_KIND)
    if session.tables.refused:
        yield Loss("mapping table not kept: too many processes or mappings", session.tables.refused, "trace fewer")
    if session.rows.refused:
        yield Loss("unwind table not kept: too many binaries", session.rows.refused, "trace fewer")
    if session.spaces.generated.unlisted:
        count = len(session.spaces.generated.unlisted)
        yield Loss("code of a JIT that could not be followed: too many mappings", count, "none yet")
    for reason, count in (session.jit.refused + session.frames.refused).items():
        yield Loss(f"code of a JIT that could not be followed: {reason}", count, "none")
    if session.code.lost:
        yield Loss("function of a JIT's log not kept: too many", session.code.lost, "none yet")
    if session.sites.refused:
        yield Loss("site not probed: too many", session.sites.refused, "give fewer specs", EVERY_KIND)
    if session.prober.without_files:
        reason = "process without probes: no more files may be opened"
        yield Loss(reason, session.prober.without_files, TooFewFiles.hint, EVERY_KIND)
    if session.follower.not_followed:
        reason = "child that was not traced from its start: it was not made by fork() or vfork()"
        if not session.programs.can_hold:
            reason = "child that was not traced from its start: this kernel cannot hold it (Linux 6.0 can)"
        yield Loss(reason, session.follower.not_followed, "none")
    if session.follower.started_unseen:
        reason = "program that was not traced from its start: its exec was not seen, or is of a kind unknown here"
        if not session.programs.can_hold:
            reason = "program that was not traced from its start: this kernel cannot hold it (Linux 6.0 can)"
        yield Loss(reason, session.follower.started_unseen, "none")
    if session.follower.lapsed:
        reason = "process that ran for a moment without probes, when its first thread had ended before others"
        yield Loss(reason, session.follower.lapsed, "none", EVERY_KIND)
    if session.follower.translated:
        reason = "program that another one translates (valgrind, qemu-user): nothing in it was traced"
        count = len({pid for pid, _ in session.follower.translated})
        yield Loss(reason, count, "trace it without the other")
    if session.follower.dispatching:
        reason = "process that dispatches its own system calls (as Wine does): not traced from then on"
        yield Loss(reason, len({pid for pid, _ in session.follower.dispatching}), "none", EVERY_KIND)
    if session.follower.patching:
        reason = "process that patches its own code, where probes were: not traced from then on"
        yield Loss(reason, len({pid for pid, _ in session.follower.patching}), "none", EVERY_KIND)
    if session.follower.copied:
        reason = "start of a probed function that the program copied and runs elsewhere: calls through it are not seen"
        yield Loss(reason, session.follower.copied, "none", EVERY_KIND)
