"""Call paths of balance trees: the program's own calls of a stack."""

from __future__ import annotations

from tracer.analysis.stacks import SymbolizedStack
from tracer.model.balance import CallPath
from tracer.model.frames import Frame

_LOST: CallPath = (("", Frame(None, why_unknown="stack not kept")),)


def call_path(stack: SymbolizedStack) -> CallPath:
    """Return the program's own calls, outermost first; one that says so, where the stack was lost."""
    return tuple(stack.own_calls()[::-1]) or _LOST
