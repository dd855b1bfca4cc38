"""Registers as words: all of threads that stand anywhere, at the end of a process those that calls preserve."""

from __future__ import annotations

import numpy as np

from tracer.architecture.x86_64.registers import PRESERVED, WORDS
from tracer.reachability.memory import RegionKind
from tracer.scanning.register_words import register_words, thread_rows
from tracer.scanning.stopped_threads import REGISTERS


def test_registers_at_the_end() -> None:
    own, other = (np.arange(first, first + REGISTERS, dtype=np.uint64) for first in (100, 1000))
    words, regions = register_words(own, [other])
    assert regions["kind"].tolist() == [RegionKind.ENDING_REGISTER, RegionKind.REGISTER]
    found = words["value"].tolist()
    assert set(found[:REGISTERS]) == {0, *(100 + WORDS[register] for register in PRESERVED)}
    assert found[REGISTERS:] == other.tolist()


def test_what_stands_behind_the_general_registers_belongs_to_its_thread() -> None:
    """Of threads that stood outside of system calls the vectors follow, as many as may be pointers."""
    first, second = np.arange(REGISTERS + 3, dtype=np.uint64), np.arange(REGISTERS, dtype=np.uint64)
    rows = thread_rows(7, np.zeros(0, np.uint64), {8: first, 9: second})
    words, regions = register_words(np.zeros(0, np.uint64), [first, second])
    assert rows["tid"].tolist() == [8, 9]
    assert (rows["registers"][1] - rows["registers"][0], len(words)) == (8 * (REGISTERS + 3), 2 * REGISTERS + 3)
    assert words["at"][REGISTERS + 3] == rows["registers"][1]
    assert regions["end"][-1] == words["at"][-1] + np.uint64(8)


def test_no_thread_ends() -> None:
    words, _ = register_words(np.zeros(0, np.uint64), [])
    assert len(words) == 0
