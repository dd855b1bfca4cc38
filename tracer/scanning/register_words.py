"""Registers of threads, as words and regions of memory."""

from __future__ import annotations

import numpy as np

from tracer.architecture.current import ARCHITECTURE
from tracer.model.snapshot import Records
from tracer.reachability.memory import REGION, THREAD, WORD, RegionKind
from tracer.scanning.stopped_threads import Words, stack_pointer

_ENDING_AT, _RUNNING_AT = 8, 0x1000
"""Where registers are made to stand, in the page that nothing can be mapped to."""


def thread_rows(thread: int, own: Words, others: dict[int, Words]) -> Records:
    """Return THREADs: of the one that ends the process, and of the others."""
    rows = [(thread, stack_pointer(own), _ENDING_AT)] if len(own) else []
    at = _RUNNING_AT
    for tid, registers in others.items():
        rows.append((tid, stack_pointer(registers), at))
        at += 8 * len(registers)
    return np.array(rows, THREAD)


def register_words(own: Words, others: list[Words]) -> tuple[Records, Records]:
    """Return the registers as words at made-up places, and the regions of these. `own`: of the thread at the entry of
    _exit, where those that calls do not preserve hold what is over."""
    preserved = [place for place in ARCHITECTURE.register_words.values() if place < len(own)]
    rest = np.concatenate(others) if others else np.zeros(0, np.uint64)
    words = np.zeros(len(own) + len(rest), WORD)
    words["value"][preserved], words["value"][len(own) :] = own[preserved], rest
    words["at"][: len(own)] = _ENDING_AT + 8 * np.arange(len(own))
    words["at"][len(own) :] = _RUNNING_AT + 8 * np.arange(len(rest))
    regions = [(_ENDING_AT, _ENDING_AT + 8 * len(own), RegionKind.ENDING_REGISTER)]
    regions += [(_RUNNING_AT, _RUNNING_AT + 8 * len(rest), RegionKind.REGISTER)]
    return words, np.array(regions, REGION)
