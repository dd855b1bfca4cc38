"""Programs that may start processes, and those that hardly do."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_program import build

from tracer.elf.process_makers import may_start_processes

PLAIN = "#include <stdlib.h>\nint fork_off(void) { return rand(); }\nint main(void) { return fork_off(); }"


@pytest.mark.parametrize("options", [(), ("-s",), ("-no-pie", "-g")], ids=" ".join)
def test_what_calls_nothing_of_the_kind(tmp_path: Path, options: tuple[str, ...]) -> None:
    """What it calls its own functions says nothing."""
    assert not may_start_processes(build(tmp_path, PLAIN, *options))


@pytest.mark.parametrize("call", [
    'fork()', 'vfork()', 'system("true")', 'popen("true", "r")', 'posix_spawnp(0, "a", 0, 0, 0, 0)', 'syscall(57)',
    'execl("a", "a", 0)', "clone(0, 0, 0, 0)",
])  # fmt: skip
def test_what_refers_to_it(tmp_path: Path, call: str) -> None:
    includes = "".join(f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "unistd", "spawn", "sched"))
    source = f"#define _GNU_SOURCE\n{includes}int main(int n, char **v) {{ if (n > 9) {call}; }}"
    assert may_start_processes(build(tmp_path, source, "-w", "-s"))


@pytest.mark.parametrize(("function", "does"), [
    ("g_spawn_check_exit_status", True), ("_ZN8QProcess5startEv", True), ("g_subprocess_new", True),
    ("dlopen", False), ("sqlite3_exec", False), ("device_new_from_subsystem", False), ("png_process_data", False),
])  # fmt: skip
def test_what_a_library_is_called_for(tmp_path: Path, function: str, does: bool) -> None:
    """What is loaded may do anything; but who starts processes refers to that itself, as a rule."""
    library = build(tmp_path, f"int {function}(void) {{ return 0; }}", "-shared", "-fPIC", name="lib.so")
    program = build(tmp_path, f"int {function}(void); int main(void) {{ return {function}(); }}", "-w", str(library))
    assert may_start_processes(program) == does


def test_of_what_is_no_dynamic_program_nothing_is_known(tmp_path: Path) -> None:
    script, damaged = tmp_path / "script", tmp_path / "damaged"
    script.write_text("#!/bin/sh\n")
    damaged.write_bytes(Path("/bin/true").read_bytes()[:100])
    static = build(tmp_path, PLAIN, "-static")
    for path in (script, damaged, static, tmp_path, tmp_path / "nowhere"):
        assert may_start_processes(path), path
