"""Call paths of balance trees: the program's own calls of a stack."""

from __future__ import annotations

from tracer.analysis.runtime import is_machinery
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.balance import CallPath
from tracer.model.frames import Frame

_LOST: CallPath = (("", Frame(None, why_unknown="stack not kept")),)


class CallPaths(dict[int, CallPath]):
    """By stack id, outermost call first. Calls of stubs and runtimes are left out, unless there are no others."""

    def __init__(self, table: SymbolizedStacks) -> None:
        super().__init__()
        self._table = table

    def add(self, stack: int) -> None:
        if stack in self:
            return
        symbolized = self._table.get(stack)
        keyed = tuple(zip(symbolized.keys, symbolized.frames, strict=True))
        self[stack] = tuple(pair for pair in keyed if not is_machinery(pair[1]))[::-1] or keyed[::-1] or _LOST
