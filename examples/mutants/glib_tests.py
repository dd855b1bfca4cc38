"""Tests of GLib's source, linked into one program with the libraries that they test."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from program import Calls, Program

Types = Sequence[Mapping[str, Any]]
"""The counted types of a spec."""


def types_of(folder: Path) -> Types:
    """Return those of the spec in the folder of an example."""
    found: Types = tomllib.loads((folder / "types.toml").read_text())["type"]
    return found


def functions(types: Types, what: str) -> dict[str, str]:
    """Return the gets or the puts, and the type of each."""
    named = ((one["name"], one[what]) for one in types)
    return {function: name for name, some in named for function in ([some] if isinstance(some, str) else some)}


class GlibTests(Program):
    """Programs of tests, which name the tests that a workload runs."""

    folder: Path
    """Of the example: its workloads are there."""
    doors: Collection[str]
    """What has the one call of a put, or a get, for all its callers: theirs are the calls that a mutant changes."""

    def workloads(self, out: Path) -> dict[str, list[str]]:
        lines = (self.folder / "workloads.txt").read_text().splitlines()
        fields = (line.split("|") for line in lines if line and line[0] != "#")
        return {name: [program, *_only(tests)] for name, program, tests in fields}

    def prepare(self, out: Path) -> None:
        """The tests need nothing."""

    def call_of(
        self, names: Mapping[str, str], function: str | None, calls: Calls, addresses: list[int]
    ) -> tuple[list[int], str | None]:
        """Pass over the call in what has it for all its callers."""
        return addresses[function in self.doors :], None


def _only(tests: str) -> Iterator[str]:
    """Yield the options that choose tests."""
    for test in tests.split():
        yield from ("-p", f"/{test}")
