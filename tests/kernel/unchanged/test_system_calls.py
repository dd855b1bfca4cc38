"""A traced program makes the system calls that it makes by itself, in the same order: both are seen by strace."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import REFLEAK
from patience import TIMEOUT_SECONDS

PROGRAMS = {
    "ls": ("/bin/ls", "-lR", "/etc/apt"),
    "perl": ("/usr/bin/perl", "-e", "print join ',', map { $_ ** 2 } 1 .. 50; open my $f, '<', '/etc/passwd'; <$f>"),
    "sqlite3": ("/usr/bin/sqlite3", ":memory:", "create table t(a); insert into t values (7); select a from t"),
    "git": ("/usr/bin/git", "version", "--build-options"),
    "shell": ("/bin/sh", "-c", "ls /; (exit 3); date -u -d @0"),
    "python": ("/usr/bin/python3", "-I", "-c", "import json, ctypes; print(json.dumps(ctypes.sizeof(ctypes.c_long)))"),
}
_LINE = re.compile(r"(\d+) +(?:(\w+)\(|(--- (?!SIGCHLD).*|\+\+\+.*))")
_WHEN_A_CHILD_ENDS = {"rt_sigreturn"}
"""From the handler of SIGCHLD: before or within the call that waits for the child."""
_OF_THE_KERNEL = {"uretprobe", "uprobe", "syscall_0x14f", "syscall_0x150"}
"""Of the code that the kernel puts behind a function with a return probe (Linux 6.11), and behind a nop (6.18)."""


def _calls(log: Path, command: Sequence[str]) -> list[list[str]]:
    """Run strace as a part of a command; return what each process did, in the order of their beginnings."""
    subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
        env=os.environ | {"LC_ALL": "C", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    done: dict[str, list[str]] = {}
    for line in log.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match is not None and match[2] not in _OF_THE_KERNEL | _WHEN_A_CHILD_ENDS:
            done.setdefault(match[1], []).append(match[2] or match[3])
    return list(done.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_system_calls_are_the_same(program: str, tmp_path: Path) -> None:
    log, report = tmp_path / "log", tmp_path / "report.json"
    watched = ["strace", "-f", "-o", str(log), *PROGRAMS[program]]
    alone = _calls(log, watched)
    log.unlink()
    traced = _calls(log, [str(REFLEAK), "--format", "json", "-o", str(report), "--exec", *watched])
    assert len(alone[0]) > 50
    assert traced == alone
