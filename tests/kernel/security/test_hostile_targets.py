"""What a target holds must neither hang the trace nor end it: each of these did."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Run

SECONDS = 60
"""Each took minutes, or had no end."""
BLOCKS = 101


def traced(refleak: Refleak, targets: Path, before: str, *options: str) -> Run:
    """Trace a shell that does something hostile and goes on as a program that leaks."""
    script = f"{before}\nexec {targets}/many_live {BLOCKS}"
    return refleak(*options, target=("/bin/sh", "-c", script), timeout=SECONDS)


def check_leak(run: Run) -> None:
    """The trace has gone on to its end."""
    assert run.status == 0
    assert sum(leak["count"] for leak in run.leaks if leak["type"] == "malloc" and leak["pid"] == root(run)) >= BLOCKS


def root(run: Run) -> int:
    return int(run.report["processes"][0]["pid"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "main.c"
    path.write_text("int main(void) { return 0; }")
    return path


@pytest.mark.parametrize("place", ["pipe", "folder", "/dev/ptmx", "/dev/zero"])
def test_a_loader_that_is_no_file(refleak: Refleak, targets: Path, source: Path, place: str) -> None:
    loader = source.parent / place
    if place == "pipe":
        os.mkfifo(loader)
    elif place == "folder":
        loader.mkdir()
    program = source.parent / "program"
    subprocess.run(["gcc", "-o", program, source, f"-Wl,--dynamic-linker={loader}"], check=True)
    check_leak(traced(refleak, targets, f"{program} 2>/dev/null"))


def test_a_script_that_is_its_own_interpreter(refleak: Refleak, targets: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    script.chmod(0o755)
    check_leak(traced(refleak, targets, f"{script} 2>/dev/null"))


DAMAGED = {"segment": (0x80, 8), "entry": (24, 8), "sections": (40, 8)}
"""Where the numbers stand that are made as large as can be."""


@pytest.mark.parametrize("place", DAMAGED)
def test_a_program_with_impossible_headers(refleak: Refleak, targets: Path, source: Path, place: str) -> None:
    program = source.parent / "program"
    subprocess.run(["gcc", "-o", program, source], check=True)
    data = bytearray(program.read_bytes())
    at, size = DAMAGED[place]
    data[at : at + size] = b"\xff" * size
    program.write_bytes(data)
    check_leak(traced(refleak, targets, f"{program} 2>/dev/null"))


OVERLAPPING = "i=0; while [ $i -lt 1000 ]; do echo 1000 fffffff f$i; i=$((i+1)); done >/tmp/perf-$$.map"


@pytest.mark.parametrize("lines", [OVERLAPPING, "truncate -s 20G /tmp/perf-$$.map"], ids=["overlapping", "hole"])
def test_a_perf_map_without_end(refleak: Refleak, targets: Path, lines: str) -> None:
    run = traced(refleak, targets, lines)
    Path(f"/tmp/perf-{root(run)}.map").unlink()
    check_leak(run)
