"""Tracers of processes, by ptrace(2), and debuggers among them.

The kernel looks at each int3 whether a uprobe stands there, before it sends a signal (kernel/events/uprobes.c,
handle_swbp). So a breakpoint that a debugger sets where a probe stands is the probe's, and the debugger never hears of
it. gdb's stand in the dynamic loader, by which it learns what a program maps.
"""

from __future__ import annotations

import os
import re

from tracer.late_patterns import late_pattern
from tracer.procfs.process import thread_ids

_TRACER = late_pattern(r"^TracerPid:\t(\d+)", re.MULTILINE)
_DEBUGGER = late_pattern(r"(?:gdb|lldb|gdbserver|lldb-server|debugserver|rr|edb|dlv|r2|radare2)(?:-[\w.]+)?")


def tracer_of(pid: int) -> str | None:
    """Return who traces a thread of a process, as "strace (pid 812)"; None where nobody else does."""
    for tid in thread_ids(pid):
        tracer = _tracer_in(thread_status(pid, tid))
        if tracer not in (0, os.getpid()):
            return f"{_name(tracer) or 'a process'} (pid {tracer})"
    return None


def debugger_of(pid: int) -> str | None:
    """Return the name of the debugger that runs a process; None where none does, as for strace, which sets no
    breakpoints."""
    tracer = _tracer_in(thread_status(pid, pid))
    name = _name(tracer) if tracer else ""
    return name if _DEBUGGER.fullmatch(name) else None


def thread_status(pid: int, tid: int) -> str:
    """Return proc_pid_status(5) of a thread; "" where it is gone."""
    return _read(f"/proc/{pid}/task/{tid}/status")


def _tracer_in(status: str) -> int:
    found = _TRACER.search(status)
    return int(found[1]) if found is not None else 0


def _name(pid: int) -> str:
    return _read(f"/proc/{pid}/comm").strip()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
