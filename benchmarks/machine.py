"""On what and when a run was made: no host name, no path."""

from __future__ import annotations

import datetime
import os
import platform
import re
from contextlib import suppress
from pathlib import Path


def processor() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return " ".join(found[1].split())
    return platform.machine() or "unknown"


def is_virtual() -> bool:
    with suppress(OSError):
        return bool(re.search(r"^flags\s*:.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    return False


def description(seconds: float, rounds: int) -> str:
    """Return one line: processor, kernel, date, and how long the run took."""
    system = os.uname()
    where = "a virtual machine, " if is_virtual() else ""
    return (
        f"{processor()}, {where}{os.cpu_count()} processors; {system.sysname} {system.release.split('-')[0]} "
        f"{system.machine}; {datetime.date.today().isoformat()}; up to {rounds} rounds, {seconds / 60:.1f} minutes; "
        f"load average {os.getloadavg()[0]:.1f} at the end"
    )
