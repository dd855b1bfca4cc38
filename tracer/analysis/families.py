"""Families of the heap's functions: what one of them made, only the same family may free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, islice

from tracer.model.frames import Frame

_SIZED = re.compile(r"_Zd[la]Pvm(St11align_val_t)?")
_ALIGNED = "align_val_t"
_ALLOCATORS = frozenset({
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
})  # fmt: skip
_REALLOCATORS = frozenset({"realloc", "reallocarray"})
_OPERATORS = ("operator new", "operator delete", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv")
_MOST = 4


@dataclass(frozen=True, order=True)
class Family:
    """Those of C, or operators of C++: of arrays or not, with an alignment or not."""

    is_cpp: bool = False
    is_array: bool = False
    is_aligned: bool = False


@dataclass(frozen=True)
class Call:
    """What the caller of a block's birth or end called, as far as that is certain."""

    names: frozenset[str] = frozenset()
    """As linked."""
    by_jumps: bool = True
    """Nothing that stands on the stack lies between the call and the C library: its arguments are still there."""

    @property
    def families(self) -> frozenset[Family]:
        return frozenset(map(family_of, self.names))

    @property
    def is_sized(self) -> bool:
        return bool(self.names) and all(_SIZED.fullmatch(name) and _ALIGNED not in name for name in self.names)

    @property
    def is_aligned(self) -> bool:
        return bool(self.names) and all(_ALIGNED in name for name in self.names)


NOT_CERTAIN = Call()


def family_of(name: str) -> Family:
    """Return the family of a function, called as it is linked or demangled."""
    if not _is_operator(name):
        return Family()
    return Family(True, name.startswith(("_Zna", "_Zda")) or "[]" in name.partition("(")[0], _ALIGNED in name)


def _is_operator(name: str | None) -> bool:
    return name is not None and name.startswith(_OPERATORS)


def call_of(frames: tuple[Frame, ...], is_birth: bool) -> Call:
    """Return what the user of the heap called. `frames`: of the stack, leaf first.

    Operators that stand on the stack have called what lies below them. Of a function without a name it is not known
    whether it is one.
    """
    by_jumps = True
    for _, entries in islice(groupby(frames, key=lambda frame: (frame.path, frame.address)), _MOST):
        place = list(entries)
        inlined = [frame.function for frame in place[:-1] if _is_operator(frame.function)]
        function, calls = place[-1].function, place[-1].calls
        if function is None:
            return NOT_CERTAIN
        if _is_operator(function):
            by_jumps = False
            continue
        if inlined:
            return Call(frozenset({str(inlined[-1])}), False)
        names = frozenset(calls.split("|") if calls else ())
        return Call(frozenset(name for name in names if name in _REALLOCATORS or _makes(name) == is_birth), by_jumps)
    return NOT_CERTAIN


def _makes(name: str) -> bool:
    return name in _ALLOCATORS or name.startswith("_Zn")


def called(names: frozenset[str]) -> str:
    """Say how a programmer calls these functions."""
    return " or ".join(sorted({_called(name) for name in names}))


def _called(name: str) -> str:
    family = family_of(name)
    if not family.is_cpp:
        return name
    word = "new" if name.startswith(("_Zn", "operator new")) else "delete"
    return ("aligned " if family.is_aligned else "") + word + ("[]" if family.is_array else "")
