"""The qualified name inside a demangled C++ or Rust function name: no return type, template or other arguments."""

from __future__ import annotations

import re
from functools import lru_cache

from tracer.late_patterns import late_pattern

_NAMELESS = late_pattern(r"\(anonymous namespace\)|\{(lambda|unnamed|closure)[^}]*\}")
_CLONE = late_pattern(r"\s*\[[^\]]*\]")
_QUALIFIERS = late_pattern(r"(\s*(const|volatile|noexcept|&&?))+\s*$")
_PIECE = late_pattern(r"(?<!\w)operator(?!\w)|[<(]|[>)]|[^<>()o]+|o", re.DOTALL)


@lru_cache(maxsize=65536)
def qualified_name(function: str) -> str:
    """Return `Ns::f` for `std::string Ns<std::map>::f(int) const`; what is no C++ name comes back as it is.

    The names are those of the Itanium C++ ABI as libiberty and LLVM demangle them.
    """
    text = _CLONE.sub("", _NAMELESS.sub("_", function))
    bare = ""
    depth = 0
    for piece in map(str, _PIECE.findall(text)):
        if piece == "operator" and not depth:  # what follows may be brackets that are its name
            return bare.rsplit(" ", 1)[-1] + piece
        if piece in ("<", "("):
            depth += 1
        elif piece in (">", ")"):
            depth = max(depth - 1, 0)
        elif depth == 0:
            bare += piece
    return _QUALIFIERS.sub("", bare).rsplit(" ", 1)[-1]
