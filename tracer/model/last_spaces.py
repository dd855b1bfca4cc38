"""The last address space of each process: an exec begins another one."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.model.addresses import Space
from tracer.model.snapshot import Process


def last_spaces(spaces: Iterable[Process]) -> tuple[Process, ...]:
    """Return the last of each process, in the order in which the processes began.

    Of thousands of processes two may have had one pid, one after the other: each is one. `spaces`: in order of time.
    """
    last: list[Process] = []
    executed: dict[Space, int] = {}
    for space in spaces:
        at = executed.pop((space.pid, space.generation - 1), len(last))
        last[at : at + 1] = [space]
        if space.by_exec:
            executed[space.pid, space.generation] = at
    return tuple(last)
