"""Names as the programmer wrote them: C++ and Rust, old mangling and v0.

Sources: Itanium C++ ABI, 5.1; Rust RFC 2603 (v0); rustc-demangle's list of the old mangling's escapes.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tracer.late_patterns import late_pattern
from tracer.symbols.tool import find_tool, run_tool

CLONE_SUFFIX = late_pattern(
    r"(?:\.(?:cold|part|isra|constprop|lto_priv|localalias|clone|llvm|__uniq)(?:\.\d+)*)+$", re.ASCII
)
"""What gcc and clang append to the name of a copy or a part of a function."""
COLD_PART = late_pattern(r"\.cold(?:\.\d+)*(?:\.|$)")

_MANGLED_RUST = late_pattern(r"_ZN.*17h[0-9a-f]{16}E", re.ASCII)
_RUST_HASH = late_pattern(r"::h[0-9a-f]{16}$", re.ASCII)
_RUST_ESCAPE = late_pattern(r"\$(\w+)\$|\.\.", re.ASCII)
_RUST_SIGNS = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_SAFE_LINE = late_pattern(r"[\w.$]+", re.ASCII)
_CRATE_NUMBER = late_pattern(r"(?<=\w)\[[0-9a-f]+\]", re.ASCII)
_EXTENSIONS = {
    ".c": "C", ".rs": "Rust",
    ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".C": "C++", ".c++": "C++",
    ".hpp": "C++", ".hh": "C++", ".hxx": "C++", ".ipp": "C++", ".tcc": "C++",
}


def language_of(name: str | None, file: str | None) -> str | None:
    """Return "C++", "Rust" or "C" by a name's mangling, else by its source file's ending; else None."""
    if name is not None and (name.startswith("_R") or _MANGLED_RUST.match(name)):
        return "Rust"
    if name is not None and name.startswith("_Z"):
        return "C++"
    return _EXTENSIONS.get(file[file.rfind(".") :]) if file and "." in file else None


def demangled(names: Collection[str]) -> dict[str, str]:
    """Return every name as it was written; one that nothing can demangle stays as it is."""
    plain = {name: CLONE_SUFFIX.sub("", name) or name for name in names}
    stems = set(plain.values())
    known = {stem: _by_library(stem) for stem in stems if stem.startswith("_Z")}
    left = [s for s in stems if s.startswith("_R") or (s.startswith("_Z") and known[s] is None)]
    known |= _by_tool([stem for stem in left if _SAFE_LINE.fullmatch(stem)])
    written = {s: _rust(text) if _MANGLED_RUST.match(s) and text != s else text for s, text in known.items() if text}
    return {name: written.get(stem, stem) for name, stem in plain.items()}


def _by_library(name: str) -> str | None:
    from tracer.symbols.demangling_library import demangled_name  # 10 ms, which no trace of a C program needs

    return demangled_name(name)


def _by_tool(names: list[str]) -> dict[str, str | None]:
    """Ask llvm-cxxfilt, or else c++filt."""
    for name in ("llvm-cxxfilt", "c++filt"):
        tool = find_tool(name) if names else None
        if tool is None:
            continue
        output = run_tool([tool], "".join(f"{n}\n" for n in names))
        lines = output.text.split("\n")
        if output.failure is None and len(lines) == len(names) + 1:
            pairs = zip(names, lines, strict=False)
            return {n: _CRATE_NUMBER.sub("", text) if n.startswith("_R") else text for n, text in pairs}
    return {}


def _rust(text: str) -> str:
    """Undo what the old mangling of Rust puts on top of that of C++."""
    pieces = _RUST_HASH.sub("", text).split("::")
    return "::".join(_RUST_ESCAPE.sub(_sign, p[1:] if p.startswith("_$") else p) for p in pieces)


def _sign(match: re.Match[str]) -> str:
    code = match[1]
    if code is None:
        return "::"
    if code in _RUST_SIGNS:
        return _RUST_SIGNS[code]
    if re.fullmatch("u[0-9a-f]{1,5}", code):
        return chr(int(code[1:], 16))
    return match[0]
