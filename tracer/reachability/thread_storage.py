"""The threads of a process as its memory shows them: whose stack a word is on, and whose storage it is in."""

from __future__ import annotations

import numpy as np

from tracer.reachability.memory import Addresses, Memory

_SELF_AGAIN = 16
_ABOVE = np.uint64(0x900)
"""Bytes of glibc's struct pthread, which a thread pointer points at."""
_REGISTERS_END = np.uint64(1 << 16)


def thread_pointers(memory: Memory) -> Addresses:
    """Return those of all threads, ascending. A thread pointer shows itself: the first and the third word of what it
    points at are its own address, both in glibc (tcbhead_t: tcb, self) and, but for the third, in musl."""
    words = memory.words
    own = words["at"][words["at"] == words["value"]]
    again = set(words["at"][words["at"] - words["value"] == _SELF_AGAIN].tolist())
    return np.array(sorted(at for at in own.tolist() if at + _SELF_AGAIN in again), np.uint64)


class ThreadStorage:
    """Of all threads, by their thread pointers and stack pointers."""

    def __init__(self, memory: Memory, size_bytes: int) -> None:
        """`size_bytes`: of the static thread-local storage of all binaries, which is below the thread pointer."""
        self._size, self._pointers = np.uint64(size_bytes), thread_pointers(memory)
        self._threads = np.sort(memory.threads, order="stack")
        self._by_registers = np.sort(memory.threads, order="registers")
        self._ends = self._stack_ends(memory)

    def _stack_ends(self, memory: Memory) -> Addresses:
        """Return where the region ends that each stack pointer is in."""
        regions = memory.regions
        if len(regions) == 0:
            return np.zeros(len(self._threads), np.uint64)
        index = np.maximum(np.searchsorted(regions["start"], self._threads["stack"], side="right") - 1, 0)
        ends: Addresses = regions["end"][index]
        return ends

    def pointers(self, at: Addresses) -> Addresses:
        """Return the pointer of the thread in whose storage each address is, 0: in none."""
        if len(self._pointers) == 0:
            return np.zeros(len(at), np.uint64)
        above = np.minimum(np.searchsorted(self._pointers, at, side="right"), len(self._pointers) - 1)
        below = np.maximum(np.searchsorted(self._pointers, at, side="right") - 1, 0)
        after, before = self._pointers[above], self._pointers[below]
        is_below = (after > at) & (after - at <= self._size)
        is_above = (before <= at) & (at - before < _ABOVE)
        return np.where(is_above, before, np.where(is_below, after, np.uint64(0)))

    def threads(self, at: Addresses) -> Addresses:
        """Return the number of the thread on whose stack, or in whose registers, each address is; 0: unknown."""
        if len(self._threads) == 0:
            return np.zeros(len(at), np.uint64)
        index = np.searchsorted(self._threads["stack"], at + np.uint64(128), side="right") - 1
        on_stack = (index >= 0) & (at < self._ends[index])
        register = np.searchsorted(self._by_registers["registers"], at, side="right") - 1
        is_register = (register >= 0) & (at < _REGISTERS_END)
        tid = np.where(on_stack, self._threads["tid"][index], 0)
        return np.where(is_register, self._by_registers["tid"][register], tid).astype(np.uint64)
