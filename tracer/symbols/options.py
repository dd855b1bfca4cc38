"""Options of symbols."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class SymbolOptions:
    demangle: bool = True
    """False leaves names as the linker saw them, compilers' clone suffixes included."""
    debug_directories: tuple[str, ...] = ()
    """Searched before /usr/lib/debug, by build id and by debug link."""
    inlines: bool = True
    """False keeps only the function that really has a stack frame, at the line of its inlined call."""
