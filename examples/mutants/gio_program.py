"""GIO 2.74 with tests of its own, as examples/gio/build.sh makes them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import gio_slots
from program import ROOT, Calls, Program

_HERE = ROOT / "examples/gio"
_TYPES = tomllib.loads((_HERE / "types.toml").read_text())["type"]
_NAMES = {one["name"] for one in _TYPES}
_CALLS_PUT = {"g_source_unref": "GSource"}
_CALLS_GET = {"g_variant_ref_sink": "GVariant"}
"""What has the one call of a put, or a get, for all its callers: theirs are the calls that a mutant changes."""


def _functions(what: str) -> dict[str, str]:
    """Return the gets or the puts, and the type of each."""
    named = ((one["name"], one[what]) for one in _TYPES)
    return {function: name for name, some in named for function in ([some] if isinstance(some, str) else some)}


def _only(tests: str) -> Iterator[str]:
    """Yield the options that choose tests."""
    for test in tests.split():
        yield from ("-p", f"/{test}")


class Gio(Program):
    """Tests of GIO in one program, which name the tests that a workload runs."""

    binary = _HERE / "build/gio-tests"
    slots = gio_slots
    puts = _functions("put") | _CALLS_PUT
    gets = _functions("get") | _CALLS_GET
    unused = "g_inet_address_mask_new_from_string"
    options = ("--spec", str(_HERE / "types.toml"))
    held = gio_slots.HELD

    def workloads(self, out: Path) -> dict[str, list[str]]:
        lines = (_HERE / "workloads.txt").read_text().splitlines()
        fields = (line.split("|") for line in lines if line and line[0] != "#")
        return {name: [program, *_only(tests)] for name, program, tests in fields}

    def prepare(self, out: Path) -> None:
        """The tests need nothing."""

    def family(self, type_name: str) -> str:
        """Return GObject for its classes: what fills a slot is told by its place."""
        return type_name if type_name in _NAMES else "GObject"

    def changes(self, address: int, functions: Mapping[str, int]) -> bool:
        """Change calls of GIO itself, which is linked between two marks."""
        return functions["gio_begins"] <= address < functions["gio_ends"]

    def call_of(
        self, names: Mapping[str, str], function: str | None, calls: Calls, addresses: list[int]
    ) -> tuple[list[int], str | None]:
        """Pass over the call in what has it for all its callers."""
        return addresses[function in (*_CALLS_PUT, *_CALLS_GET) :], None
