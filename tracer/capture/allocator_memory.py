"""The memory of allocators that take the place of libc's: what of it is in no block is free, or their books."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.elf.stored_pointers import StorageWord, storage_word
from tracer.model.distinct_values import is_in
from tracer.model.records import FRAME_BINARY_SHIFT, MappedFlag
from tracer.model.snapshot import Records, Stack
from tracer.probing.embedded_allocators import is_embedded_whole
from tracer.probing.replacements import is_replacement, moves_break, whole_replacements
from tracer.procfs.maps import MapsEntry
from tracer.scanning.layout import Words
from tracer.scanning.outstanding import Heaps


def of_program(mapped: Records) -> Records:
    """Return those MAPPED_RECORDs that calls of the heap did not make: allocations tell of that memory."""
    chosen: Records = mapped[mapped["flags"] & np.uint32(MappedFlag.BY_HEAP) == 0]
    return chosen


def heaps_of(mapped: Records, stacks: Mapping[int, Stack], binaries: Sequence[OpenBinary]) -> Heaps | None:
    """Return what such allocators have, of MAPPED_RECORDs; None where there is none, or not all blocks are known."""
    allocators = whole_replacements(binaries)
    inside = {number for number, stack in stacks.items() if stack.frames and _binary(stack) in allocators}
    if embedding := {binary.id for binary in binaries if is_embedded_whole(binary)}:
        inside |= _called_as_in_the_heap(embedding, mapped, stacks)
    if not inside:
        return None
    chosen = mapped[is_in(mapped["stack"], np.array(sorted(inside), np.uint64))]
    return Heaps(chosen, has_break=bool(allocators) and not moves_break(binaries))


class AllocatorStorage:
    """Where such allocators have their thread-local storage: what they keep there are books too."""

    def __init__(self, binaries: Binaries) -> None:
        self._binaries = binaries
        self._words: dict[int, StorageWord | None] = {}
        """By binary; None of those that are no such allocators, too: each process that ends has dozens."""

    def find(self, entries: Sequence[MapsEntry], words: Words) -> list[tuple[int, int]]:
        """Return, in an address space, where each begins from the thread pointer on, and its size in bytes. `entries`:
        lines of /proc/PID/maps; `words` reads from it."""
        found: dict[int, tuple[int, int]] = {}
        for entry in entries:
            binary = self._binaries.known(entry) if entry.inode else None
            word = self._word_of(binary) if binary is not None else None
            if binary is None or word is None or binary.id in found:
                continue
            bias = binary.bias_of(entry.start, entry.end, entry.file_offset)
            value = words(bias + word.link_address, 1) if bias is not None else ()
            first = _signed(value[0]) - word.addend if value else 0
            if first + word.size <= 0:  # below the thread pointer, once the loader has written it
                found[binary.id] = first, word.size
        return list(found.values())

    def _word_of(self, binary: OpenBinary) -> StorageWord | None:
        if binary.id not in self._words:
            self._words[binary.id] = storage_word(binary.image) if is_replacement(binary) else None
        return self._words[binary.id]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _binary(stack: Stack) -> int:
    """Return the id of the binary that called mmap."""
    return stack.frames[0] >> FRAME_BINARY_SHIFT


def _called_as_in_the_heap(embedding: set[int], mapped: Records, stacks: Mapping[int, Stack]) -> set[int]:
    """Return the stacks whose innermost frame, in one of these binaries, called mmap inside of a call of the heap too:
    that is the allocator's own, in a binary which may map other memory."""
    by_heap = mapped["stack"][mapped["flags"] & np.uint32(MappedFlag.BY_HEAP) != 0].tolist()
    known = {number: stack for number, stack in stacks.items() if stack.frames and _binary(stack) in embedding}
    calls = {known[number].frames[0] for number in by_heap if number in known}
    return {number for number, stack in known.items() if stack.frames[0] in calls}
