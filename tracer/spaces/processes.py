"""Process table of the target: one entry for each address space, from fork or exec to exec or end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.snapshot import Process
from tracer.procfs import process as proc


@dataclass
class _Shared:
    """A vfork child before its exec: it has no memory of its own."""

    pid: int
    parent: int
    started_ns: int


class ProcessTable:
    """Processes by (pid, generation); times in nanoseconds since the trace began."""

    def __init__(self) -> None:
        self._processes: dict[Space, Process] = {}
        self._current: dict[int, int] = {}
        self._alive: dict[int, None] = {}
        """Pids of those that have not ended, in order of their start: of a hundred thousand a few."""
        self._sharing: dict[int, _Shared] = {}

    def add(self, pid: int, generation: int, parent: int | None, command: tuple[str, ...], started_ns: int) -> None:
        """Enter the process that was launched or attached to."""
        self._enter(Process(pid, generation, parent, command, proc.executable(pid), started_ns))

    def forget(self, pid: int) -> None:
        """Take out a process that was attached to and ended before the trace began."""
        self._processes.pop((pid, self._current.pop(pid, -1)), None)
        self._alive.pop(pid, None)

    def _enter(self, process: Process) -> None:
        self._processes[process.space] = process
        self._current[process.pid] = process.generation
        self._alive[process.pid] = None

    def current(self, pid: int) -> Process | None:
        return self._processes.get((pid, self._current.get(pid, -1)))

    def forked(self, pid: int, generation: int, parent: int, time_ns: int, *, shares_memory: bool) -> None:
        if shares_memory:
            self._sharing[pid] = _Shared(pid, parent, time_ns)
            return
        before = self.current(parent)
        self._enter(
            Process(
                pid, generation, parent, before.command if before else (), before.executable if before else None,
                time_ns, forked_from=(parent, before.generation) if before else None,
            )
        )

    def execed(self, pid: int, generation: int, path: str, time_ns: int) -> None:
        """End the old address space, if it had one of its own, and enter the new one."""
        shared = self._sharing.pop(pid, None)
        before = None if shared else self.current(pid)
        parent = shared.parent if shared else before.parent if before else None
        if before is not None:
            self._update(before, ended_ns=time_ns, by_exec=True)
        command = proc.command_line(pid) or (path,)
        self._enter(Process(pid, generation, parent, command, proc.executable(pid) or path, time_ns))

    def name_again(self, pid: int) -> None:
        """Read command and executable once more: at the exec event itself they may not have been there yet."""
        before, command = self.current(pid), proc.command_line(pid)
        if before is not None and command:
            self._update(before, command=command, executable=proc.executable(pid) or before.executable)

    def exited(self, pid: int, status: int | None, time_ns: int) -> None:
        """Note the end; `status` is a wait(2) status."""
        self._sharing.pop(pid, None)
        self._alive.pop(pid, None)
        before = self.current(pid)
        if before is None or before.ended_ns is not None:
            return
        code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
        signal = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
        self._update(before, ended_ns=time_ns, exit_code=code, signal=signal)

    def _update(self, process: Process, **changes: object) -> None:
        self._processes[process.space] = replace(process, **changes)  # type: ignore[arg-type]

    @property
    def living(self) -> tuple[int, ...]:
        """Return the pids that have not ended, those that share their parent's memory included."""
        return (*self._alive, *self._sharing)

    @property
    def spaces_alive(self) -> list[Space]:
        """Return the address spaces of the processes that run on."""
        return [(pid, self._current[pid]) for pid in self._alive if proc.is_alive(pid)]

    @property
    def spaces_in_use(self) -> set[Space]:
        """Return the address spaces of those that have not ended, and those that these began as copies of."""
        found: set[Space] = set()
        for pid in (*self._alive, *(shared.parent for shared in self._sharing.values())):
            space: Space | None = (pid, self._current.get(pid, -1))
            while space is not None and space not in found:
                found.add(space)
                process = self._processes.get(space)
                space = process.forked_from if process is not None else None
        return found

    def spaces_since(self, time_ns: int) -> list[Space]:
        """Return the address spaces that have not ended, or not before a time of the trace."""
        found = self._processes.values()
        return [p.space for p in found if p.ended_ns is None or p.ended_ns >= time_ns]

    def records(self, keys: npt.NDArray[np.void], totals: npt.NDArray[np.void]) -> tuple[Process, ...]:
        """Return all processes in order of start, with the totals that the kernel side kept (KEY, SPACE_TOTALS)."""
        found = dict(zip(zip(keys["pid"].tolist(), keys["generation"].tolist(), strict=True), totals, strict=True))
        return tuple(_with_totals(self._processes.values(), found))


def _with_totals(processes: Iterable[Process], found: dict[Space, np.void]) -> Iterable[Process]:
    for process in processes:
        sums = found.get(process.space)
        yield process if sums is None else replace(
            process, made=int(sums["made"]), made_bytes=int(sums["made_bytes"]), freed=int(sums["freed"]),
            freed_bytes=int(sums["freed_bytes"]), unknown_frees=int(sums["unknown_frees"]),
        )
