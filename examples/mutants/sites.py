"""Calls of gets and puts that the workloads execute, which mutants change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

from program import Calls, Program

LEFT_OUT, GET_LEFT_OUT, GET_TWICE, PUT_TWICE, PUT_MOVED = KINDS = (
    "left-out", "get-left-out", "get-twice", "put-twice", "put-moved",
)  # fmt: skip
OVER_PUTS = (GET_LEFT_OUT, PUT_TWICE)
"""Kinds of which a put is one too many."""
KEPT = 4
"""Frames of a site's stack, leaf first, at least."""
_PUTS, _GETS = "sites.json", "get-sites.json"
_FILES = {LEFT_OUT: _PUTS, PUT_TWICE: _PUTS, PUT_MOVED: _PUTS, GET_LEFT_OUT: _GETS, GET_TWICE: _GETS}


@dataclass(frozen=True)
class Site:
    """A call of a get or of a put."""

    address: int
    kind: str
    stack: Calls
    workloads: dict[str, int] = field(hash=False)
    """How often it was executed in each."""
    depth: int = 1
    """How many functions at the leaf of `stack` the call is in: itself, and those that were inlined or it calls."""

    def digest(self, program: Program) -> bytes:
        """Return a hash of the place in the source."""
        function, line = program.slots.unwrapped(self.stack)[0]
        return sha256(f"{function}:{line}".encode()).digest()

    def half(self, program: Program) -> int:
        """Return 0 or 1, by the hash of the place."""
        return self.digest(program)[-1] % 2

    def is_in(self, stack: Calls) -> bool:
        """Tell whether a stack goes through this very call."""
        return stack[: self.depth] == self.stack[: self.depth]

    def plain(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def read(cls, plain: dict[str, object]) -> Site:
        stack = tuple((str(function), int(line)) for function, line in plain.pop("stack"))  # type: ignore[attr-defined]
        return cls(stack=stack, **plain)  # type: ignore[arg-type]


def read_sites(out: Path, kind: str) -> list[Site]:
    return [Site.read(plain) for plain in json.loads((out / _FILES[kind]).read_text())]


def write_sites(out: Path, kind: str, sites: Iterable[Site]) -> None:
    (out / _FILES[kind]).write_text(json.dumps([site.plain() for site in sites]))
