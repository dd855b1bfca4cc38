"""Families of the heap's functions: what one of them made, only the same family may free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, islice

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.frames import BY_JUMP, BY_REGISTER, BY_WORD, FOLDED, Frame

_SIZED = late_pattern(r"_Zd[la]Pvm(St11align_val_t)?")
_ALIGNED = "align_val_t"
_ALLOCATORS = frozenset({
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
})  # fmt: skip
_REALLOCATORS = frozenset({"realloc", "reallocarray"})
_OPERATORS = ("operator new", "operator delete", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv")
MOST_CALLS = 4
"""What called the heap is among the innermost calls, or not known."""
_OF_CPP: Mapping[bool, frozenset[str]] = {
    True: frozenset({"_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"}),
    False: frozenset({"_ZdlPv", "_ZdaPv", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t"}),
}
"""One operator of each family, that make blocks and that free them."""


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


@dataclass(frozen=True)
class ByPointer:
    """What the kernel side found of the innermost call, if that is an indirect one."""

    path: int
    """By which instructions it was read."""
    called: str | None
    """What calls of the function are for that was called."""

    def names(self, calls: str) -> str | None:
        """Return the names of what the call was for, if it was read as the frame's `calls` says; else None.

        A function may have written another one's address to the word that it was called by, before it jumped on: a
        state does that. So what is believed for a word must be the heap's own function, which is nobody's next state.
        """
        if self.called in (None, FOLDED) or calls[1:] != f"{self.path:x}":
            return None
        if self.called.startswith(BY_JUMP):
            return self.called[1:] if calls.startswith(BY_REGISTER) else None
        return self.called


def family_of(name: str) -> Family:
    """Return the family of a function, called as it is linked or demangled."""
    if not _is_operator(name):
        return Family()
    return Family(True, name.startswith(("_Zna", "_Zda")) or "[]" in name.partition("(")[0], _ALIGNED in name)


def _is_operator(name: str | None) -> bool:
    return name is not None and name.startswith(_OPERATORS)


def call_of(frames: tuple[Frame, ...], is_birth: bool, by_pointer: ByPointer | None = None) -> Call:
    """Return what the user of the heap called. `frames`: of the stack, leaf first.

    Operators that stand on the stack have called what lies below them. Of a function without a name it is not known
    whether it is one.
    """
    by_jumps = True
    for place in _places(frames):
        inlined = [frame.function for frame in place[:-1] if _is_operator(frame.function)]
        function, calls = place[-1].function, place[-1].calls
        if function is None or calls == FOLDED:
            return NOT_CERTAIN
        if _is_operator(function):
            by_jumps = False
            continue
        if inlined:
            return Call(frozenset({str(inlined[-1])}), False)
        if calls is not None and calls.startswith((BY_REGISTER, BY_WORD)):
            calls = by_pointer.names(calls) if by_pointer is not None and by_jumps else None
            by_jumps = False
        names = frozenset(calls.split("|") if calls else ())
        fit = frozenset(name for name in names if name in _REALLOCATORS or _makes(name) == is_birth)
        if not fit and place[0] != frames[0]:  # an operator stands on the stack: whichever called it, it is C++'s
            return Call(_OF_CPP[is_birth], False)
        return Call(fit, by_jumps)
    return NOT_CERTAIN


def made_by_c(frames: tuple[Frame, ...], entered: str) -> Call:
    """Return what made a block where neither a call nor an operator on the stack says so: `entered` of the C library.

    It was called through a pointer or by jumps. That is certain only where no binary has operators of its own, which
    may jump to the C library.
    """
    place = next(_places(frames), [])
    if not place or any(frame.function is None or _is_operator(frame.function) for frame in place):
        return NOT_CERTAIN
    return Call(frozenset({entered} & _ALLOCATORS))


def _places(frames: tuple[Frame, ...]) -> Iterator[list[Frame]]:
    """Yield the innermost calls, each with what was inlined there."""
    for _, entries in islice(groupby(frames, key=lambda frame: (frame.path, frame.address)), MOST_CALLS):
        yield list(entries)


def _makes(name: str) -> bool:
    return name in _ALLOCATORS or name.startswith("_Zn")


def called(names: frozenset[str]) -> str:
    """Say how a programmer calls these functions."""
    if names in _OF_CPP.values():
        return f"an operator {'new' if names == _OF_CPP[True] else 'delete'}"
    return " or ".join(sorted({_called(name) for name in names}))


def _called(name: str) -> str:
    family = family_of(name)
    if not family.is_cpp:
        return name
    word = "new" if name.startswith(("_Zn", "operator new")) else "delete"
    return ("aligned " if family.is_aligned else "") + word + ("[]" if family.is_array else "")
