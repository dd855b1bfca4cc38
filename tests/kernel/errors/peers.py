"""What refleak, memcheck and AddressSanitizer say of a program: a set of (kind, line of offence, of birth)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Told = frozenset[tuple[str, int, int]]
SOURCE = "heap_programs.cpp"
_ERRORS = re.compile(r"==\d+== (?=Invalid|Mismatched)")
_IN_SOURCE = re.compile(rf"{re.escape(SOURCE)}:(\d+)")
_SANITIZER = {
    "attempting double-free": "double-free", "attempting free on address": "invalid-free",
    "alloc-dealloc-mismatch": "mismatched-free",
}  # fmt: skip
_PLACE = re.compile(rf"#\d+ .*{re.escape(SOURCE)}:(\d+)")


def told_by_refleak(report: Mapping[str, Any]) -> Told:
    return frozenset(
        (error["kind"], _line(error["stack"]), _line(error["created_at"] or ())) for error in report["errors"]
    )


def _line(stack: Iterable[Mapping[str, Any]]) -> int:
    return next((frame["line"] for frame in stack if (frame["file"] or "").endswith(SOURCE)), 0)


def told_by_memcheck(program: Path, name: str, twin: str, folder: Path) -> Told:
    """As XML, memcheck says nothing of forked children."""
    _run(["valgrind", "-q", f"--log-file={folder}/memcheck.%p", str(program), name, twin])
    told = set()
    for path in folder.glob("memcheck.*"):
        for error in _ERRORS.split(path.read_text())[1:]:
            stacks = error.split("Address")[0], error.rpartition("alloc'd")[2]
            kind = "mismatched-free" if error.startswith("Mismatched") else "invalid-free"
            offence, birth = (_IN_SOURCE.search(stack) for stack in stacks)
            told.add((kind, int(offence[1]) if offence else 0, int(birth[1]) if birth else 0))
        path.unlink()
    return frozenset(told)


def told_by_sanitizer(program: Path, name: str, twin: str) -> Told:
    text = _run([str(program), name, twin])
    for words, kind in _SANITIZER.items():
        if words in text:
            parts = text.partition("ERROR: AddressSanitizer")[2].split("\n\n")
            stacks = [part for part in parts if "#0" in part and "created by" not in part]
            return frozenset({(kind, *_first_and_last([_first_place(stack) for stack in stacks]))})
    return frozenset()


def _first_place(stack: str) -> int:
    match = _PLACE.search(stack)
    return int(match[1]) if match else 0


def _first_and_last(lines: Sequence[int]) -> tuple[int, int]:
    """Each of them gives the offence first and the birth last; a double free has one more between."""
    found = [line for line in lines if line]
    return (found[0], found[-1]) if found else (0, 0)


def _run(command: Sequence[str]) -> str:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False).stderr
