"""Aborted frees: those in which the C library ended the program, told by the stack of the thread that it is held on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tracer.kernel.known_threads import thread_head
from tracer.kernel.maps import Maps
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.events import AROUND_SHIFT, ERROR_EVENT, ErrorKind, Where
from tracer.model.operations import Operation
from tracer.model.records import FRAME_BINARY_SHIFT, StackStatus
from tracer.model.snapshot import Process, Records, Snapshot, Stack
from tracer.scanning.process_memory import ProcessMemory
from tracer.scanning.stopped_threads import stack_pointer
from tracer.scanning.thread_stacks import DumpedWalk, MakeWalk, dumped_walk, stack_number

_WORD = 8


@dataclass(frozen=True)
class _Free:
    unknown: np.void
    """UNKNOWN_FREE: the last one of the thread."""
    thread: int
    walk: DumpedWalk


class AbortedFrees:
    """Keeps of each process that is held at its end which free of an unknown address it is in, if any.

    `clock` turns the kernel's time into the trace's.
    """

    def __init__(self, maps: Maps, clock: Callable[[int], int], make_walk: MakeWalk) -> None:
        self._maps, self._clock, self._make_walk = maps, clock, make_walk
        self._frees: dict[tuple[Space, int], _Free] = {}
        """By when they were: some programs go on from abort()."""

    def held(self, control: np.void) -> None:
        """Look at a thread that is held at its process's last call. Raises OSError."""
        space = int(control["pid"]), int(control["generation"])
        thread = thread_head(self._maps, int(control["tid"]))
        if thread is None or (int(thread["pid"]), int(thread["generation"])) != space:
            return
        unknown, registers = thread["unknown_free"], control["ending"]["registers"]
        slot, back = int(unknown["slot"]), int(unknown["back"])
        if not unknown["address"] or slot < stack_pointer(registers):
            return
        is_probed = int(thread["pending"]["slot"]) == slot  # a realloc: its return address is the probe's
        memory = ProcessMemory(space[0])
        try:
            if is_probed or memory.words(slot, 1) == [back]:
                walk = dumped_walk(memory, space, registers, self._make_walk, {slot: back} if is_probed else {})
                when = space, int(unknown["time_ns"])
                self._frees[when] = _Free(unknown.copy(), int(control["ending"]["thread"]), walk)
        finally:
            memory.close()

    def told(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with these frees among its errors, and how their addresses lie on the stack."""
        if not self._frees:
            return snapshot
        errors, stacks, processes = snapshot.errors.copy(), dict(snapshot.stacks), list(snapshot.processes)
        for (space, _), free in self._frees.items():
            walked = free.walk.walk.run()
            places = [free.walk.stack + place for place in walked.places] if walked is not None else []
            slot = int(free.unknown["slot"])
            if walked is None or slot + _WORD not in places:
                continue
            first = places.index(slot + _WORD)
            frames = walked.stack.frames
            if len({frame >> FRAME_BINARY_SHIFT for frame in frames[:first]}) != 1:
                continue
            stack = Stack(frames[first:], walked.stack.status)
            frame = _frame_at(int(free.unknown["address"]), places)
            around = Stack(frames[frame:], walked.stack.status) if frame is not None else None
            stacks |= {stack_number(part): part for part in (stack, around) if part is not None}
            numbers = stack_number(stack), stack_number(around) if around else 0
            found = self._with(errors, space, free, numbers, _where(free, walked.stack, places))
            is_counted = snapshot.sites[int(free.unknown["site"])].operation == Operation.FREE
            if len(found) > len(errors) and is_counted:  # among the frees of what is not known
                processes = [_with_one_less(process, space) for process in processes]
            errors = found
        return replace(snapshot, errors=errors, stacks=stacks, processes=tuple(processes))

    def _with(self, errors: Records, space: Space, free: _Free, stacks: tuple[int, int], where: Where) -> Records:
        """Return the errors with this one, which may be one of them. `stacks`: of the free, and of the frame that its
        address is in, or 0."""
        unknown, (stack, around) = free.unknown, stacks
        what: Mapping[str, int] = {
            "pid": space[0], "generation": space[1], "tid": free.thread, "address": int(unknown["address"]),
            "error": ErrorKind.INVALID_FREE,
        }  # fmt: skip
        same = np.ones(len(errors), dtype=bool)
        for name, value in what.items():
            same &= errors[name] == value
        at = np.flatnonzero(same)
        if not len(at):
            row = np.zeros(1, ERROR_EVENT)
            for name, value in what.items():
                row[name] = value
            row["time_ns"], row["stack"] = self._clock(int(unknown["time_ns"])), stack
            row["site"], row["operation"], row["represented"] = int(unknown["site"]), Operation.ERROR, 1
            row["where"] = Where.ON_STACK if unknown["on_stack"] else 0
            errors, at = np.concatenate([errors, row.astype(errors.dtype)]), np.array([len(errors)])
        errors["where"][at[-1]] |= int(where)
        if around and not int(errors["where"][at[-1]]) >> AROUND_SHIFT:
            errors["birth"][at[-1]] = around
            errors["where"][at[-1]] |= int(Where.ON_STACK)  # of a fiber's too
        return errors


def _with_one_less(process: Process, space: Space) -> Process:
    if process.space != space:
        return process
    return replace(process, unknown_frees=max(0, process.unknown_frees - 1))


def _where(free: _Free, stack: Stack, places: list[int]) -> Where:
    unknown, is_whole = free.unknown, stack.status == StackStatus.COMPLETE
    is_behind = unknown["on_stack"] and is_whole and int(unknown["address"]) >= places[-1]
    return Where.ABORTED | Where.BEHIND_FRAMES if is_behind else Where.ABORTED


def _frame_at(address: int, places: list[int]) -> int | None:
    """Return which frame an address is in: one reaches from its stack pointer to its caller's."""
    return next((n for n, (start, end) in enumerate(pairwise(places)) if start <= address < end), None)
