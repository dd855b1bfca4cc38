"""The names that JITs give to what they make, taken apart.

V8 writes KIND:TIER NAME FILE:LINE:COLUMN for functions of scripts (src/logging/log.cc, src/objects/code-kind.cc), where
the tier changes while the program runs; CPython py::NAME:FILE (Python/perf_trampoline.c).
"""

from __future__ import annotations

import re

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

_V8 = late_pattern(r"(?:JS|LazyCompile|Function|Eval|Script):[~^+*']?(\S*) (.+):(\d+):(\d+)", re.DOTALL)
_V8_KIND = late_pattern(r"(?:JS|LazyCompile|Function|Eval|Script|Builtin|BytecodeHandler|RegExp|Stub|Handler):")
_CPYTHON = late_pattern(r"py::(.+?):(.+)", re.DOTALL)


@dataclass(frozen=True)
class FunctionName:
    """`file` is where the function is defined, `language` that of its source; None where the name does not say so."""

    function: str
    file: str | None = None
    language: str | None = None


def read_name(name: str) -> FunctionName:
    """Return the parts of a name; a function without a name of its own is called for where it begins."""
    match = _V8.fullmatch(name)
    if match:
        return FunctionName(match[1] or f"(anonymous):{match[3]}:{match[4]}", match[2], "JavaScript")
    match = _CPYTHON.fullmatch(name)
    if match:
        return FunctionName(match[1], match[2], "Python")
    return FunctionName(name)


def is_of_v8(name: str) -> bool:
    return _V8_KIND.match(name) is not None
