"""GLib 2.74 with tests of its own, as examples/glib/build.sh makes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import glib_slots
from program import ROOT, Calls, Program

_HERE = ROOT / "examples/glib"
_TYPES = tomllib.loads((_HERE / "types.toml").read_text())["type"]
_CALLS_PUT = {"g_source_unref": "GSource", "g_tree_destroy": "GTree"}
_CALLS_GET = {"g_variant_ref_sink": "GVariant"}
"""What has the one call of a put, or a get, for all its callers: theirs are the calls that a mutant changes."""

_OF_LIBRARY = re.compile(r"g_\w+")
"""No part that is never run, which stands elsewhere, and no stub for another library's function."""


def _functions(what: str) -> dict[str, str]:
    """Return the gets or the puts, and the type of each."""
    named = ((one["name"], one[what]) for one in _TYPES)
    return {function: name for name, some in named for function in ([some] if isinstance(some, str) else some)}


def _only(tests: str) -> Iterator[str]:
    """Yield the options that choose tests."""
    for test in tests.split():
        yield from ("-p", f"/{test}")


class Glib(Program):
    """Tests of GLib in one program, which name the tests that a workload runs."""

    binary = _HERE / "build/glib-tests"
    slots = glib_slots
    puts = _functions("put") | _CALLS_PUT
    gets = _functions("get") | _CALLS_GET
    unused = "g_hostname_to_ascii"
    options = ("--spec", str(_HERE / "types.toml"))
    held = glib_slots.HELD

    def workloads(self, out: Path) -> dict[str, list[str]]:
        lines = (_HERE / "workloads.txt").read_text().splitlines()
        fields = (line.split("|") for line in lines if line and line[0] != "#")
        return {name: [program, *_only(tests)] for name, program, tests in fields}

    def prepare(self, out: Path) -> None:
        """The tests need nothing."""

    def changes(self, address: int, functions: Mapping[str, int]) -> bool:
        """Change calls of the library: it is linked behind the tests, whose functions have no such names."""
        return address >= min(start for name, start in functions.items() if _OF_LIBRARY.fullmatch(name))

    def call_of(
        self, names: Mapping[str, str], function: str | None, calls: Calls, addresses: list[int]
    ) -> tuple[list[int], str | None]:
        """Pass over the call in what has it for all its callers."""
        return addresses[function in (*_CALLS_PUT, *_CALLS_GET) :], None
