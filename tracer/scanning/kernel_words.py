"""Words that the kernel keeps for a process: pointers that it was given and gives back later.

Who waits for events often keeps what belongs to a connection there and nowhere else; so it is with what belongs to a
timer, and with the memory of a stack for signals. In /proc/PID/fdinfo (proc_pid_fdinfo(5)) stands what epoll was given
(epoll_ctl(2)), "tfd: 5 events: 19 data: 55d0c8a1b2a0 pos:0 ino:1f sdev:d"; in /proc/PID/timers (proc_pid_timers(5))
what timers were (timer_create(2)), "signal: 10/000055d0c8a1b2a0".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tracer.kernel.alternate_stacks import alternate_stacks
from tracer.late_patterns import late_pattern
from tracer.model.distinct_values import distinct
from tracer.model.joined_rows import joined_rows
from tracer.model.snapshot import Records
from tracer.reachability.memory import REGION, WORD, RegionKind
from tracer.scanning.stopped_threads import LEAST_POINTER, Words

_EVENT = late_pattern(r"tfd:\s*(\d+) events:.* data:\s*([0-9a-f]{1,16})\b", re.ASCII)
_TIMER = late_pattern(r"signal:\s*\d+/([0-9a-f]{1,16})\b", re.ASCII)
_EPOLL = "anon_inode:[eventpoll]"


def kernel_words(pid: int) -> Words:
    """Return what may be pointers of the data in all epoll instances that a process has open, of its timers' values,
    and the starts of its stacks for signals; none where the kernel does not say it."""
    data = [word for fd in _instances(pid) for word in _of_events(_text(f"/proc/{pid}/fdinfo/{fd}"))]
    data += _of_timers(_text(f"/proc/{pid}/timers"))
    found = np.concatenate([np.array(data, np.uint64), alternate_stacks(pid)])
    return distinct(found[found >= LEAST_POINTER])


def _instances(pid: int) -> Iterator[str]:
    try:
        open_ones = tuple(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return
    for file in open_ones:
        try:
            if os.readlink(file) == _EPOLL:  # noqa: PTH115 a Path of it takes three times as long
                yield file.name
        except OSError:  # closed since, by a process that runs on
            continue


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _of_events(text: str) -> Iterator[int]:
    """Yield the words but for numbers of descriptors: who stores one leaves the upper half as it was."""
    for line in text.splitlines():
        if found := _EVENT.match(line):
            data = int(found[2], 16)
            if data & 0xFFFFFFFF != int(found[1]):
                yield data


def _of_timers(text: str) -> Iterator[int]:
    """Yield the words; where a timer was given none, it is the timer's number."""
    for line in text.splitlines():
        if found := _TIMER.match(line):
            yield int(found[1], 16)


def with_kernel_words(words: Records, regions: Records, found: Words) -> tuple[Records, Records]:
    """Add words to those of registers, at made-up places behind them, as of memory that the program mapped."""
    if len(found) == 0:
        return words, regions
    start = int(regions["end"].max(initial=0))
    added = np.zeros(len(found), WORD)
    added["at"], added["value"] = start + 8 * np.arange(len(found)), found
    region = np.array([(start, start + 8 * len(found), RegionKind.MAPPING)], REGION)
    return joined_rows([words, added]), joined_rows([regions, region])
