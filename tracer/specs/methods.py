"""Methods of C++ that pair: classes that count by incRefCnt and decRefCnt, ref and unref, AddRef and Release.

Mangled names pair them (Itanium C++ ABI, 5.1.3: `_ZN`, each name behind its length, `E`, the parameters). The code must
bear them out: one adds 1 to a word of the object, the other takes 1 from the same. What makes an object is a
constructor that sets that word to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tracer.dwarf.debug_facts import Member
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.specs.discovery import Proposal

_PAIRS = (
    ("incRefCnt", "decRefCnt"), ("incRefCount", "decRefCount"), ("incRef", "decRef"), ("IncRef", "DecRef"),
    ("incref", "decref"), ("inc_ref", "dec_ref"), ("ref", "unref"), ("Ref", "Unref"), ("ref", "deref"),
    ("Ref", "UnRef"), ("AddRef", "Release"), ("addRef", "release"), ("addref", "release"), ("add_ref", "release"),
    ("addRef", "removeRef"), ("addReference", "removeReference"), ("reference", "unreference"), ("retain", "release"),
    ("Retain", "Release"), ("acquire", "release"), ("Acquire", "Release"), ("grab", "drop"),
    ("increaseReferenceCount", "decreaseReferenceCount"), ("IncrementReferenceCount", "DecrementReferenceCount"),
)  # fmt: skip
_NESTED = late_pattern(r"_ZNK?(?P<names>\d+[A-Za-z_]\w*)")
_LENGTH = late_pattern(r"\d+")
_CONSTRUCTOR = late_pattern(r"C[12]E")
_NO_PARAMETERS = "Ev"
_CREATE = "{}(object=arg0)"


@dataclass(frozen=True)
class _Method:
    """A name taken apart."""

    symbol: str
    of: str
    """The class, as it is written."""
    name: str
    """Empty for a constructor."""
    rest: str
    """What stands behind the names: E and the parameters; before them C1 or C2 of a constructor."""


def counted_classes(
    functions: Collection[str], adds: Callable[[str, int], int | None], sets: Callable[[str, int], int | None]
) -> Iterator[Proposal]:
    """Yield the classes whose methods count.

    `adds`, of a function and a number, says at which offset of its object it adds that; `sets`, of a function and an
    offset, what it sets the word there to. Both are None where the code does not tell.
    """
    methods = [method for method in map(_taken_apart, sorted(functions)) if method is not None]
    by_name = {(m.of, m.name): m.symbol for m in methods if m.name and m.rest == _NO_PARAMETERS}
    done: set[str] = set()
    for get, put in _PAIRS:
        for (of, name), symbol in by_name.items():
            if name != get or of in done or (other := by_name.get((of, put))) is None:
                continue
            offset = adds(symbol, 1)
            if offset is None or adds(other, -1) != offset:
                continue
            done.add(of)
            creates = (c for c in _constructors(methods, of) if sets(c, offset) == 1)
            yield Proposal(
                of, tuple(map(_CREATE.format, creates)), (symbol,), (other,), struct=of,
                counter=Member("", offset, ""), is_by_code=True,
            )  # fmt: skip


def _taken_apart(symbol: str) -> _Method | None:
    """Return a method or a constructor of a class that is no template; None for everything else."""
    match = _NESTED.match(symbol)
    if match is None:
        return None
    names, at = [], match.start("names")
    while (length := _LENGTH.match(symbol, at)) is not None:
        at = length.end() + int(length[0])
        names.append(symbol[length.end() : at])
    if _CONSTRUCTOR.match(symbol, at):
        return _Method(symbol, "::".join(names), "", symbol[at:])
    return _Method(symbol, "::".join(names[:-1]), names[-1], symbol[at:]) if len(names) >= 2 else None


def _constructors(methods: list[_Method], of: str) -> Iterator[str]:
    """Yield those of a class, each once: that of a whole object (C1) is mostly another name of that of a base (C2)."""
    found = {(m.rest[1], m.rest[2:]): m.symbol for m in methods if m.of == of and not m.name}
    yield from (symbol for (kind, rest), symbol in found.items() if kind == "2" or ("2", rest) not in found)
