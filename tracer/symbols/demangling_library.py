"""Demangling by libstdc++, through cxxfilt."""

from __future__ import annotations

try:
    import cxxfilt
except ImportError:  # no package of Debian's: the tools do its work
    cxxfilt = None


def demangled_name(name: str) -> str | None:
    """Return the name itself where it is no mangled one, None where cxxfilt or libstdc++ is not there."""
    if cxxfilt is None:
        return None
    try:
        return str(cxxfilt.demangle(name))
    except (cxxfilt.InvalidName, UnicodeError):
        return name
    except cxxfilt.Error:
        return None
