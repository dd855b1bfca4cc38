"""Interpreters in the target's binaries, told to the programs that walk their frames."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.binaries.open_binaries import OpenBinary
from tracer.interpreters.languages import LANGUAGES
from tracer.kernel.later_programs import InterpreterPrograms
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps


class InterpreterRuntimes:
    """`programs`: what walks the frames; None where they are not wanted."""

    def __init__(self, maps: Maps, programs: InterpreterPrograms | None, mishaps: Mishaps) -> None:
        self._programs = programs
        self._runtimes = [language.runtimes(maps, mishaps) for language in LANGUAGES]

    @property
    def notes(self) -> list[str]:
        return [note for runtimes in self._runtimes for note in runtimes.notes]

    def load_programs(self, binaries: Iterable[OpenBinary]) -> None:
        """Load the programs if one of the binaries is an interpreter: better now than while it is held."""
        if self._programs is not None and any(map(self._is_interpreter, binaries)):
            _ = self._programs.fds

    def enter(self, table: int, mapped: Iterable[tuple[OpenBinary, int]]) -> None:
        """Say of a mapping table which interpreters run there, if any: binaries with their bias."""
        found = [(binary, bias) for binary, bias in mapped if self._is_interpreter(binary)] if self._programs else []
        if found and self._programs is not None and not self._programs.fds:
            found = []
        for runtimes in self._runtimes:
            runtimes.enter(table, found)

    def misses_ends(self, binary: OpenBinary) -> None:
        """Say that not all ends of code objects of this binary are seen, or not any more."""
        for runtimes in self._runtimes:
            runtimes.misses_ends(binary)

    def _is_interpreter(self, binary: OpenBinary) -> bool:
        return any(runtimes.is_in(binary) for runtimes in self._runtimes)
