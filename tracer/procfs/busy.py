"""Busy machines: those on which more wants to run than there are processors for."""

from __future__ import annotations

import os
from pathlib import Path

_RUNNABLE_OF_A_PROCESSOR = 2
_LOAD = Path("/proc/loadavg")


def is_busy(load: Path = _LOAD) -> bool:
    """Tell whether more than two threads for each processor, besides this one, want to run now (proc_loadavg(5))."""
    try:
        runnable = int(load.read_text().split()[3].partition("/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return False
    return runnable > _RUNNABLE_OF_A_PROCESSOR * len(os.sched_getaffinity(0))
