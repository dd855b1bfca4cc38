"""What a run may leave behind in the kernel: BPF links and programs, and uprobes in tracefs."""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from patience import PATIENCE

_NR_BPF = 321
_NEXT_ID = {"prog": 11, "link": 31}
"""BPF_PROG_GET_NEXT_ID and BPF_LINK_GET_NEXT_ID of enum bpf_cmd (include/uapi/linux/bpf.h)."""
_UPROBE_EVENTS = Path("/sys/kernel/tracing/uprobe_events")
_PATIENCE_SECONDS = 20 * PATIENCE
_libc = ctypes.CDLL(None, use_errno=True)

Ids = frozenset[tuple[str, int]]


def _ids(kind: str) -> Iterator[tuple[str, int]]:
    at = 0
    while True:
        attributes = ctypes.create_string_buffer(struct.pack("<III", at, 0, 0), 12)
        if _libc.syscall(_NR_BPF, _NEXT_ID[kind], attributes, 12) < 0:
            return
        at = struct.unpack_from("<I", attributes, 4)[0]
        yield kind, at


def all_ids() -> Ids:
    """Return the (kind, id) of every BPF program and link that there is."""
    return frozenset(found for kind in _NEXT_ID for found in _ids(kind))


def _held_by_others(own: set[int]) -> Ids:
    """Return the ids that file descriptors of processes hold, but for those of `own`."""
    held = set()
    for place in Path("/proc").glob("[0-9]*/fdinfo"):
        if int(place.parent.name) in own:
            continue
        try:
            texts = [entry.read_text() for entry in place.iterdir()]
        except OSError:
            continue
        for line in "".join(texts).splitlines():
            name, _, value = line.partition(":")
            if name in ("link_id", "prog_id"):
                held.add((name.removesuffix("_id"), int(value)))
    return frozenset(held)


def _uprobe_events() -> frozenset[str]:
    """Return the lines of the events in tracefs: groups name who made them and who closes them."""
    return frozenset(_UPROBE_EVENTS.read_text().splitlines() if _UPROBE_EVENTS.exists() else ())


def owners_of(event: str) -> list[str]:
    """Return the numbers of the processes that may have an event open, alive or not; none where it is not refleak's."""
    found = re.match(r"\w:refleak_((?:\d+_)+)", event)
    return [] if found is None else found[1].split("_")[:-1]


def _is_of_living(event: str) -> bool:
    return any(Path("/proc", pid).exists() for pid in owners_of(event))


class Residue:
    """Compares the kernel before and after a run. Other tracers may work at the same time: what a process of
    theirs holds is theirs."""

    def __init__(self) -> None:
        self._ids, self._events = all_ids(), _uprobe_events()

    def left(self, *own: int) -> list[str]:
        """Return what is new and not another process's; `own` processes (targets) may hold nothing either.

        The kernel frees behind its readers, so this asks again for a while: for what was there at once, as what comes
        later is of others, whose programs come and go all the time on a busy machine.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        first = all_ids()
        while True:
            new = (all_ids() & first) - self._ids
            left = sorted(new - _held_by_others({os.getpid(), *own})) if new else []
            events = [each for each in _uprobe_events() - self._events if not _is_of_living(each)]
            if not (left or events) or time.monotonic() > deadline:
                return [f"{kind} {number}" for kind, number in left] + events
            select.select([], [], [], 0.05)
