"""Protocol of an interpreted language: what refleak has to know of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.image import Image
from tracer.interpreters.script_code import ScriptCode
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model.operations import Site, Spec
from tracer.model.records import InterpreterRecord


class Runtimes(Protocol):
    """The interpreters of one language in the target's binaries."""

    notes: list[str]

    def is_in(self, binary: OpenBinary) -> bool:
        """Tell whether a binary has an interpreter that is found by its binary; looked at once."""
        ...

    def enter(self, table: int, mapped: Iterable[tuple[OpenBinary, int]]) -> None:
        """Tell the kernel side which interpreter runs where a mapping table holds: binaries with their bias."""
        ...

    def misses_ends(self, binary: OpenBinary) -> None:
        """Compare code objects of this binary each time: not all of their ends come to a probe (any more)."""
        ...


class Language(Protocol):
    @property
    def name(self) -> str:
        """As reports show it."""
        ...

    @property
    def kinds(self) -> Collection[InterpreterRecord]:
        """Of the records that its code comes in."""
        ...

    @property
    def replaces_loop(self) -> bool:
        """Tell whether its frames take the place of that of the evaluation loop; else they stand before it."""
        ...

    @property
    def layouts(self) -> Sequence[str]:
        """What entries name, by the number that the kernel side knows it by."""
        ...

    def runtimes(self, maps: Maps, mishaps: Mishaps) -> Runtimes:
        """Tell the kernel side what is the same for all, and return what finds the rest."""
        ...

    def entries(self, image: Image) -> Spec | None:
        """Return the functions by which its state becomes known, where a binary has some that are to be probed."""
        ...

    def code_end(self, image: Image) -> Site | None:
        """Return the function by which its code objects end, where a binary has it."""
        ...

    def text(self, row: Any, first_line: int) -> tuple[str | None, str | None]:
        """Return name and file of an INTERPRETER_CODE, None where it cannot be told."""
        ...

    def is_shown(self, code: ScriptCode) -> bool:
        """Tell whether code is a script's, and not the interpreter's own."""
        ...

    def lines(self, code: ScriptCode, wheres: Sequence[int]) -> Sequence[int | None]:
        """Return the line of each place in the code."""
        ...
