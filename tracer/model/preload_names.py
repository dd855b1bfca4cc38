"""The library of --preload: its names, in its source (tracer/preload) and outside, and where it is."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass

VARIABLE = "LD_PRELOAD"
SONAME = "librefleak-preload.so"
C_LIBRARY = "libc.so.6"
"""Whose functions it wraps."""
PRELOADED = "refleak_preloaded"
"""The function that it calls before all else."""
DEEP_BOUND = "refleak_deep_bound"
"""Where it learns of a library whose calls it will not see."""
MAKERS = ("malloc", "calloc", "valloc", "pvalloc")
ALIGNED_MAKERS = ("posix_memalign", "aligned_alloc", "memalign")
REALLOCATORS = ("realloc", "reallocarray")
WRAPPED = frozenset((*MAKERS, *ALIGNED_MAKERS, *REALLOCATORS, "free"))
"""What it has in place of the C library's."""


@dataclass(frozen=True)
class PreloadLibrary:
    path: str
    """Of its file, without links."""
    name: str
    """By which LD_PRELOAD is to name it."""
    is_sampled: bool = False
    """Only blocks that are drawn come to a probe."""

    def variables(self, given: str) -> dict[str, str]:
        """Return the variable; `given`: what it is without this library, which comes first, so that others call it."""
        return {VARIABLE: f"{self.name}:{given}" if given else self.name}
