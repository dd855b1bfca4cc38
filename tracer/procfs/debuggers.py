"""Debuggers: a breakpoint that one sets where a probe stands is the probe's, and the debugger never hears of it.

The kernel looks at each int3 whether a uprobe stands there, before it sends a signal (kernel/events/uprobes.c,
handle_swbp). gdb's stand in the dynamic loader, by which it learns what a program maps.
"""

from __future__ import annotations

import re
from pathlib import Path

from tracer.late_patterns import late_pattern

_TRACER = late_pattern(r"^TracerPid:\s*(\d+)$", re.M)
_NAME = late_pattern(r"(?:gdb|lldb|gdbserver|lldb-server|debugserver|rr|edb|dlv|r2|radare2)(?:-[\w.]+)?")


def debugger_of(pid: int) -> str | None:
    """Return the name of the debugger that runs a process; None where none does, as for strace, which sets no
    breakpoints."""
    try:
        found = _TRACER.search(Path(f"/proc/{pid}/status").read_text(errors="replace"))
        if found is None or found[1] == "0":
            return None
        name = Path(f"/proc/{found[1]}/comm").read_text(errors="replace").strip()
    except OSError:
        return None
    return name if _NAME.fullmatch(name) else None
