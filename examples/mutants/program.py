"""A program whose puts are left out: what the measurement needs to know of it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[2]

Calls = tuple[tuple[str, int], ...]
"""Function and line, leaf first."""


def beyond(stack: Calls, is_wrapper: Callable[[str], bool]) -> Calls:
    """Return the stack from the first function on that is no wrapper; the last one in any case."""
    start = 0
    while start < len(stack) - 1 and is_wrapper(stack[start][0]):
        start += 1
    return stack[start:]


class Slots(Protocol):
    """A module that says of places in a program's source which slot they fill or empty."""

    def unwrapped(self, stack: Calls) -> Calls:
        """Return the stack from the function on that wanted the get or the put."""

    def put_slot(self, kind: str, stack: Calls) -> str:
        """Return the slot that a put empties."""

    def get_slots(self, kind: str, stack: Calls, birth: bool) -> set[str]:
        """Return the slots that a reference may be kept in: two where one call takes two and hands up either."""


class Program(ABC):
    """A real program, its workloads, and its slots: where each reference is kept.

    The slots are written from the program's source, without refleak. What proves them: in runs of the program as it is,
    every object that ended took as many references per slot as it gave back. What a mutant's missing put would have
    answered is a get or create of its slot. "@function" is a local variable of that function.
    """

    binary: Path
    slots: Slots
    puts: Mapping[str, str]
    """What each put gives back: a family of types."""
    gets: Mapping[str, str]
    """What each get takes."""
    put_stub: str | None = None
    """A put that is inlined into others, and whose result says whether the count is 0 now."""
    get_stub: str | None = None
    """A get that is inlined into others."""
    unused: str
    """A function that no workload runs: room for what leaves out one call in four, or makes one twice."""
    options: Sequence[str] = ()
    """What refleak is told of the program."""
    held: Mapping[str, set[str]]
    """The slots of each family in other counted objects: of what is alive only because such another is."""

    @abstractmethod
    def workloads(self, out: Path) -> dict[str, list[str]]:
        """Return the arguments of the program in each workload. `out`: the folder of what is recorded."""

    @abstractmethod
    def prepare(self, out: Path) -> None:
        """Make what the workloads need."""

    def environment(self, out: Path) -> dict[str, str]:
        return dict(os.environ)

    def command(self, out: Path, name: str, traced: list[str]) -> list[str]:
        """Return the command that traces a workload, of that which runs refleak with the program."""
        return traced

    def family(self, type_name: str) -> str:
        """Return one name for types that are the same, however they are called."""
        return type_name

    def call_of(
        self, names: Mapping[str, str], function: str | None, calls: Calls, addresses: list[int]
    ) -> tuple[list[int], str | None]:
        """Return the calls from that of the get or put on, and what it takes or gives back.

        `names`: the gets, or the puts; `function`: what the first call is in."""
        return addresses, None

    def changes(self, address: int, functions: Mapping[str, int]) -> bool:
        """Tell whether mutants may change a call at a link address. `functions`: where each begins."""
        return True

    def proves(self, birth: Calls, puts: Sequence[Calls]) -> bool:
        """Tell whether an ended object went through gets and puts alone."""
        return True

