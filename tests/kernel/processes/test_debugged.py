"""A debugger's breakpoints: where a probe stood, gdb's in the loader and in malloc were never told to it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from conftest import Refleak

_COMMANDS = ("break main", "run", "break malloc", "continue", "backtrace 2", "info sharedlibrary", "kill")


def said(output: str) -> str:
    """Return what gdb said, without numbers of processes and addresses."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", output)


def test_gdb_gets_its_breakpoints(refleak: Refleak, targets: Path) -> None:
    commands = [word for command in ("set confirm off", *_COMMANDS) for word in ("-ex", command)]
    words = (shutil.which("gdb") or "gdb", "-q", "-nx", "-batch", *commands, str(targets / "clean"))
    alone = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    assert alone.count("Breakpoint 2") == 2 and "libc.so" in alone
    run = refleak(target=words)
    assert said(run.stdout) == said(alone)
    reasons = {Path(one["program"]).name: one["reason"] for one in run.report["probes"]["untraced"]}
    assert reasons["clean"].startswith("gdb runs it")
    assert any(leak["stack"] and leak["pid"] == run.report["processes"][0]["pid"] for leak in run.report["leaks"])


def test_strace_is_no_debugger(refleak: Refleak, targets: Path) -> None:
    run = refleak(target=(shutil.which("strace") or "strace", "-f", "-o", "/dev/null", targets / "clean"))
    assert not run.report["probes"]["untraced"]
    executed = [one["executable"] for one in run.report["processes"]]
    assert executed[-1] == str(targets / "clean") and run.report["totals"]["allocations"]["made"] >= 10
