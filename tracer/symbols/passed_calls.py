"""Passed values of the calls in one binary, read in the code of who calls."""

from __future__ import annotations

from tracer.architecture.architecture import NO_EFFECTS, CodeOfFunction, Effects
from tracer.architecture.current import ARCHITECTURE
from tracer.elf.symbol_table import Symbol
from tracer.late_dataclasses import dataclass
from tracer.symbols.demangling import COLD_PART
from tracer.symbols.source import Source

NOT_TOLD = ""
"""What is said of a call that was looked at, and of which nothing is known."""
_LARGEST = 1 << 16
_LARGEST_CALLEE = 1 << 11


@dataclass
class Budget:
    """How much code is still read: all of a huge program's would take longer than its report may."""

    instructions: int = 100_000
    of_callees: int = 50_000
    """Of functions that are called: what they do with what they are given."""


class PassedCalls:
    """Look into the code of one binary."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self._source, self._budget = source, budget
        self._functions: dict[int, CodeOfFunction | None] = {}
        self._effects: dict[int, Effects] = {}

    def of(self, return_address: int) -> str:
        """Return what the call before an address passes, as the text of a Passed."""
        symbol = self._source.covering(return_address - 1)
        if symbol is None or not 0 < symbol.size <= _LARGEST:
            return NOT_TOLD
        if symbol.address not in self._functions:
            self._functions[symbol.address] = self._read(symbol)
        function = self._functions[symbol.address]
        try:
            passed = None if function is None else function.passed(return_address)
        except (ValueError, RecursionError):  # code made to be read by nobody: it costs what is told, never the report
            passed = None
        return NOT_TOLD if passed is None else passed.text()

    def _read(self, symbol: Symbol) -> CodeOfFunction | None:
        image = self._source.ran
        if image is None or self._budget.instructions <= 0:
            return None
        code = image.bytes_at(symbol.address, symbol.size)
        is_entry = COLD_PART.search(symbol.name) is None
        function = ARCHITECTURE.read_function(code, symbol.address, is_entry, self._effects_of)
        self._budget.instructions -= function.instructions
        return function

    def _effects_of(self, address: int) -> Effects:
        """Return what the function at an address does with its parameters."""
        if address not in self._effects:
            self._effects[address] = NO_EFFECTS
            symbol, image = self._source.covering(address), self._source.ran
            if symbol is None or symbol.address != address or not 0 < symbol.size <= _LARGEST_CALLEE or image is None:
                return NO_EFFECTS
            if self._budget.of_callees > 0:
                function = ARCHITECTURE.read_function(image.bytes_at(address, symbol.size), address, True)
                self._budget.of_callees -= function.instructions
                self._effects[address] = function.effects()
        return self._effects[address]
