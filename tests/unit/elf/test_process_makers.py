"""Programs that may start processes, and those that hardly do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.elf.process_makers import may_start_processes

PLAIN = "#include <stdlib.h>\nint process_all(void) { return rand(); }\nint main(void) { return process_all(); }"


def built(folder: Path, source: str, *options: str) -> Path:
    program = folder / "program"
    subprocess.run(["cc", *options, "-xc", "-", "-o", program], input=source, text=True, check=True)
    return program


@pytest.mark.parametrize("options", [(), ("-s",), ("-no-pie", "-g")], ids=" ".join)
def test_what_calls_nothing_of_the_kind(tmp_path: Path, options: tuple[str, ...]) -> None:
    """What it calls its own functions says nothing."""
    assert not may_start_processes(built(tmp_path, PLAIN, *options))


@pytest.mark.parametrize("call", [
    'fork()', 'vfork()', 'system("true")', 'popen("true", "r")', 'posix_spawnp(0, "a", 0, 0, 0, 0)', 'syscall(57)',
    'execl("a", "a", 0)', 'dlopen("a", 1)', 'clone(0, 0, 0, 0)',
])  # fmt: skip
def test_what_refers_to_it(tmp_path: Path, call: str) -> None:
    includes = "".join(f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "unistd", "spawn", "dlfcn", "sched"))
    source = f"#define _GNU_SOURCE\n{includes}int main(int n, char **v) {{ if (n > 9) {call}; }}"
    assert may_start_processes(built(tmp_path, source, "-w", "-s"))


def test_of_what_is_no_dynamic_program_nothing_is_known(tmp_path: Path) -> None:
    script, damaged = tmp_path / "script", tmp_path / "damaged"
    script.write_text("#!/bin/sh\n")
    damaged.write_bytes(Path("/bin/true").read_bytes()[:100])
    static = built(tmp_path, PLAIN, "-static")
    for path in (script, damaged, static, tmp_path, tmp_path / "nowhere"):
        assert may_start_processes(path), path
