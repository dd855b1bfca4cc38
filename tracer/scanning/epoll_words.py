"""Epoll's words: pointers that a process gave the kernel, to have them back with an event (epoll_ctl(2)).

Who waits for events often keeps what belongs to a connection there and nowhere else. The kernel shows them in
/proc/PID/fdinfo (proc_pid_fdinfo(5)): "tfd: 5 events: 19 data: 55d0c8a1b2a0 pos:0 ino:1f sdev:d".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tracer.late_patterns import late_pattern
from tracer.model.distinct_values import distinct
from tracer.model.joined_rows import joined_rows
from tracer.model.snapshot import Records
from tracer.reachability.memory import REGION, WORD, RegionKind
from tracer.scanning.stopped_threads import LEAST_POINTER, Words

_LINE = late_pattern(r"tfd:\s*(\d+) events:.* data:\s*([0-9a-f]{1,16})\b", re.ASCII)
_EPOLL = "anon_inode:[eventpoll]"


def epoll_words(pid: int) -> Words:
    """Return what may be pointers of the data in all epoll instances that a process has open; none where /proc does not
    say it."""
    found = np.array([word for fd in _instances(pid) for word in _data(_text(pid, fd))], np.uint64)
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


def _text(pid: int, fd: str) -> str:
    try:
        return Path(f"/proc/{pid}/fdinfo/{fd}").read_text(errors="replace")
    except OSError:
        return ""


def _data(text: str) -> Iterator[int]:
    """Yield the words but for numbers of descriptors: who stores one leaves the upper half as it was."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            data = int(found[2], 16)
            if data & 0xFFFFFFFF != int(found[1]):
                yield data


def with_epoll_words(words: Records, regions: Records, found: Words) -> tuple[Records, Records]:
    """Add words to those of registers, at made-up places behind them, as of memory that the program mapped."""
    if len(found) == 0:
        return words, regions
    start = int(regions["end"].max(initial=0))
    added = np.zeros(len(found), WORD)
    added["at"], added["value"] = start + 8 * np.arange(len(found)), found
    region = np.array([(start, start + 8 * len(found), RegionKind.MAPPING)], REGION)
    return joined_rows([words, added]), joined_rows([regions, region])
