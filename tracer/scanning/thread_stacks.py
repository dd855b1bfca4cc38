"""Stacks of threads whose memory is read: dumped while they stand, walked later, to say whose word is whose."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from tracer.architecture.current import ARCHITECTURE
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import distinct
from tracer.model.holders import HolderKind
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_EXACT
from tracer.model.snapshot import Records, Stack
from tracer.reachability.holders import FRAME_SPAN
from tracer.scanning.process_memory import ProcessMemory
from tracer.scanning.stopped_threads import Words, stack_pointer
from tracer.unwinding.dwarf_unwinder import DwarfUnwinder
from tracer.unwinding.stack_dump import StackDump

_MOST_THREADS, _DUMP_WORDS = 64, 1 << 14
_ANYWHERE = ((0, 1 << 64),)
MakeWalk = Callable[[StackDump], DwarfUnwinder]


@dataclass(frozen=True)
class FrameSpans:
    """`spans`: FRAME_SPANs by start. `stacks`: by id, from each frame on."""

    spans: Records
    stacks: dict[int, Stack]

    def named_by(self, holders: Records) -> dict[int, Stack]:
        """Return those that words are on, of HOLDER_RECORDs."""
        places = distinct(holders["place"][holders["kind"] == HolderKind.STACK]).tolist()
        return {place: self.stacks[place] for place in places if place in self.stacks}


@dataclass(frozen=True)
class DumpedWalk:
    stack: int
    """The stack pointer."""
    walk: DwarfUnwinder


def dumped_walks(
    memory: ProcessMemory, space: tuple[int, int], threads: Iterable[Words], make_walk: MakeWalk
) -> list[DumpedWalk]:
    """Dump the stacks of some threads, by their registers; a walk of a dump needs the process no more."""
    return [
        dumped_walk(memory, space, registers, make_walk, {})
        for registers, _ in zip(threads, range(_MOST_THREADS), strict=False)
    ]


def dumped_walk(
    memory: ProcessMemory, space: tuple[int, int], registers: Words, make_walk: MakeWalk, replaced: dict[int, int]
) -> DumpedWalk:
    """Dump the stack of one thread. `replaced`: true return addresses by where on the stack probes put others."""
    return DumpedWalk(stack_pointer(registers), make_walk(_dump(memory, space, registers, replaced)))


def _dump(
    memory: ProcessMemory, space: tuple[int, int], registers: Words, replaced: dict[int, int]
) -> StackDump:  # fmt: skip
    start, ip = stack_pointer(registers) & ~7, int(registers[ARCHITECTURE.program_counter_word])
    words = np.zeros(_DUMP_WORDS, np.uint64)
    done = memory.read(start, words)
    preserved = {int(number): int(registers[place]) for number, place in ARCHITECTURE.register_words.items()}
    exact = FRAME_EXACT | ip & FRAME_ADDRESS_MASK
    return StackDump(0, 0, space, exact, ip, preserved, replaced, start, words.tobytes()[:done], _ANYWHERE)


def frame_spans(walks: Iterable[DumpedWalk]) -> FrameSpans:
    """Walk the dumps. A frame reaches from its stack pointer to its caller's; of the last one it is not known how
    far."""
    rows: list[tuple[int, int, int]] = []
    stacks: dict[int, Stack] = {}
    for dumped in walks:
        walked = dumped.walk.run()
        if walked is None:
            continue
        starts = [dumped.stack + place for place in walked.places]
        for n, (start, end) in enumerate(pairwise(starts)):
            part = Stack(walked.stack.frames[n:], walked.stack.status)
            number = stack_number(part)
            stacks[number] = part
            if end > start:
                rows.append((start - (0 if n else ARCHITECTURE.red_zone_bytes), end, number))
    return FrameSpans(np.sort(np.array(rows, FRAME_SPAN), order="start"), stacks)


def stack_number(stack: Stack) -> int:
    """Return the id of a stack that the kernel side has not walked."""
    digest = hashlib.blake2b(np.array(stack.frames, np.uint64).tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
