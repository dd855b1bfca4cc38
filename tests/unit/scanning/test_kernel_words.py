"""Words that the kernel keeps, as /proc shows them of this process."""

from __future__ import annotations

import os
import select
from contextlib import closing

import numpy as np

from tracer.reachability.memory import REGION, WORD, RegionKind
from tracer.scanning.kernel_words import _of_events, _of_timers, kernel_words, with_kernel_words

TEXT = """pos:\t0
flags:\t02
tfd:        5 events:       19 data: 55d0c8a1b2a0  pos:0 ino:1f sdev:d
tfd:        6 events:       19 data: ffffffffffffffff  pos:0 ino:1f sdev:d
tfd:        7 events:       19 data:
tfd:        8 events:       19 data:     7f5800000008  pos:0 ino:1f sdev:d
tfd: what is this
"""


def test_what_the_kernel_shows() -> None:
    assert list(_of_events(TEXT)) == [0x55D0C8A1B2A0, (1 << 64) - 1]


TIMERS = """ID: 1
signal: 10/000055d0c8a1b2a0
notify: signal/pid.2634
ClockID: 0
ID: 2
signal: 14/0000000000000002
notify: none/pid.2634
ClockID: 1
"""


def test_what_timers_were_given() -> None:
    assert list(_of_timers(TIMERS)) == [0x55D0C8A1B2A0, 2]


def test_numbers_of_descriptors_are_no_pointers() -> None:
    """Python gives epoll the descriptor itself."""
    before = len(kernel_words(os.getpid()))
    with closing(select.epoll()) as epoll, closing(open(os.eventfd(0), "rb", buffering=0)) as file:
        epoll.register(file.fileno())
        assert len(kernel_words(os.getpid())) == before


def test_who_is_gone_has_none() -> None:
    assert len(kernel_words(1 << 22)) == 0


def test_they_stand_behind_the_registers() -> None:
    words, regions = np.zeros(3, WORD), np.array([(8, 32, RegionKind.REGISTER)], REGION)
    found = np.array([0x1000000, 0x2000000], np.uint64)
    words, regions = with_kernel_words(words, regions, found)
    assert regions.tolist() == [(8, 32, RegionKind.REGISTER), (32, 48, RegionKind.MAPPING)]
    assert words[3:].tolist() == [(32, 0x1000000), (40, 0x2000000)]
    assert with_kernel_words(words, regions, found[:0])[0] is words
