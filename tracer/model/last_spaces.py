"""The last address space of each process: an exec begins another one."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.model.addresses import Space
from tracer.model.snapshot import Process


def last_by_space(spaces: Iterable[Process]) -> dict[Space, Process]:
    """Return the last address space of its process by each, in the order in which the processes began.

    Of thousands of processes two may have had one pid, one after the other. `spaces`: in order of time.
    """
    processes: list[list[Process]] = []
    executed: dict[Space, list[Process]] = {}
    for one in spaces:
        of = executed.pop((one.pid, one.generation - 1), None)
        if of is None:
            processes.append(of := [])
        of.append(one)
        if one.by_exec:
            executed[one.space] = of
    return {one.space: of[-1] for of in processes for one in of}
