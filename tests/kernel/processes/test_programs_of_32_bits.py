"""Programs of 32 bits: nothing of them is traced, which is said for what it is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import REFLEAK, LiveTarget, Refleak
from live_refleak import let_end, live_refleak

ENDS_WITH_5 = ".globl _start\n_start:\n\tmovl $1, %eax\n\tmovl $5, %ebx\n\tint $0x80\n"
PAUSES = ".globl _start\n_start:\n\tmovl $29, %eax\n\tint $0x80\n\tjmp _start\n"
OF_32_BITS = "a 32-bit program: refleak traces 64-bit ones"


def of_32_bits(folder: Path, code: str) -> Path:
    program, compiled = folder / "small", folder / "small.o"
    subprocess.run(["as", "--32", "-o", compiled, "-"], input=code, text=True, check=True, timeout=60)
    subprocess.run(["ld", "-m", "elf_i386", "-o", program, compiled], check=True, timeout=60)
    return program


@pytest.mark.parametrize("command", ["{0}; true", "{0} & wait $!; true"])
def test_a_child_of_32_bits(refleak: Refleak, tmp_path: Path, command: str) -> None:
    """Said of it was that its exec was not seen, as if data were lost."""
    program = of_32_bits(tmp_path, ENDS_WITH_5)
    run = refleak("--fail-on", "incomplete", target=("/bin/sh", "-c", command.format(program)))
    (untraced,) = run.report["probes"]["untraced"]
    assert (untraced["program"], untraced["reason"]) == (str(program), OF_32_BITS)
    assert (run.status, run.report["lost"]) == (1, [])
    text = subprocess.run([REFLEAK, "sh", "-c", command.format(program)], capture_output=True, text=True, check=False)
    lines = text.stderr.splitlines()
    assert f"NOT SEEN {program}: {OF_32_BITS}" in " ".join(map(str.strip, lines))
    assert re.match(r"refleak: no leak found, but 1 of [23] programs was not traced", lines[0])


def test_a_launched_program_of_32_bits(tmp_path: Path) -> None:
    program = of_32_bits(tmp_path, ENDS_WITH_5)
    run = subprocess.run([REFLEAK, program], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr.splitlines()[0]) == (65, f"refleak: {program} is a 32-bit program")


def test_an_attached_program_of_32_bits(refleak: Refleak, live_target: LiveTarget, tmp_path: Path) -> None:
    """By itself it is refused; beside others, or as the child of one, it is listed."""
    program = of_32_bits(tmp_path, PAUSES)
    with subprocess.Popen([program]) as small:
        try:
            command = [REFLEAK, "-p", str(small.pid)]
            alone = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            with live_target("older_children") as target:
                run = refleak("--duration", "0.5", "-p", str(small.pid), pid=target.pid)
        finally:
            small.kill()
    assert (alone.returncode, alone.stderr.splitlines()[0]) == (65, f"refleak: {program} is a 32-bit program")
    assert [(one["pid"], one["reason"]) for one in run.report["probes"]["untraced"]] == [(small.pid, OF_32_BITS)]


def test_an_attached_shell_executes_a_program_of_32_bits(tmp_path: Path) -> None:
    program = of_32_bits(tmp_path, ENDS_WITH_5)
    with (
        subprocess.Popen(["sh", "-c", f"read line; {program}; true"], stdin=subprocess.PIPE) as shell,
        live_refleak(tmp_path / "report", "--follow-forks", "-p", shell.pid) as refleak,
    ):  # fmt: skip
        refleak.wait_until_attached()
        let_end(shell)
        run = refleak.end()
    assert [(one["program"], one["reason"]) for one in run.report["probes"]["untraced"]] == [(str(program), OF_32_BITS)]
    assert run.report["lost"] == []
