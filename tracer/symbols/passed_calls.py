"""Passed values of the calls in one binary, read in the code of who calls."""

from __future__ import annotations

from tracer.architecture.architecture import CodeOfFunction
from tracer.architecture.current import ARCHITECTURE
from tracer.elf.symbol_table import Symbol
from tracer.late_dataclasses import dataclass
from tracer.symbols.demangling import COLD_PART
from tracer.symbols.source import Source

NOT_TOLD = ""
"""What is said of a call that was looked at, and of which nothing is known."""
_LARGEST = 1 << 16


@dataclass
class Budget:
    """How much code is still read: all of a huge program's would take longer than its report may."""

    instructions: int = 100_000


class PassedCalls:
    """Look into the code of one binary."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self._source, self._budget = source, budget
        self._functions: dict[int, CodeOfFunction | None] = {}

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
        function = ARCHITECTURE.read_function(code, symbol.address, COLD_PART.search(symbol.name) is None)
        self._budget.instructions -= function.instructions
        return function
