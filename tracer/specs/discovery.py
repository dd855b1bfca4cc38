"""Proposes specs for a binary: functions that pair by their names, confirmed by DWARF where there is some."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tracer.elf.debug_facts import DebugFacts, FunctionFacts, Member

_GET_PUT = (
    ("__get", "__put"), ("_up_ref", "_free"), ("_ref", "_unref"), ("_reference", "_unreference"),
    ("_reference", "_destroy"), ("_retain", "_release"), ("_addref", "_release"), ("_add_ref", "_release"),
    ("_incref", "_decref"), ("_acquire", "_release"), ("_hold", "_release"), ("_get", "_put"), ("_get", "_unref"),
    ("Ref", "Unref"), ("_inc_ref", "_dec_ref"),
)  # fmt: skip
_MAKE_END = (
    ("__new", "__delete"), ("_new", "_free"), ("_new", "_delete"), ("_new", "_destroy"), ("_create", "_destroy"),
    ("_create", "_free"), ("_alloc", "_free"), ("_open", "_close"), ("_init", "_cleanup"), ("_init", "_exit"),
)  # fmt: skip
_ENDS = ("__delete", "__free", "__destroy", "_delete", "_free", "_destroy", "_finalize")
_MAKES = re.compile(r"(?:^|_)(?:new|create|clone|copy|dup)(?:\d+)?(?:_|$)")
_COUNTER_TYPES = frozenset(
    ("refcount_t", "kref", "atomic_t", "atomic_int", "atomic_uint", "gatomicrefcount", "grefcount", "refcount_struct",
     "CRYPTO_REF_COUNT", "DBusAtomic", "atomic_long_t", "atomic_ulong", "atomic_long")
)  # fmt: skip
_COUNTER_NAME = re.compile(
    r"_*(?:n_?)?ref(?:s|cnt|count|_?count|_?cnt|erences?|_?counter)?_*|.*_ref_?(?:cnt|count)|use_?count"
)


@dataclass(frozen=True)
class Proposal:
    """One type: the functions by operation, and what speaks for them."""

    name: str
    creates: tuple[str, ...]
    gets: tuple[str, ...]
    puts: tuple[str, ...]
    deletes: tuple[str, ...] = ()
    struct: str = ""
    counter: Member | None = None
    inlined: tuple[tuple[str, int], ...] = field(default=())
    """Functions that were inlined somewhere, and how often."""

    @property
    def confirmed(self) -> bool:
        """Whether DWARF bears the names out: the functions work on one struct."""
        return bool(self.struct)


def discover(functions: Collection[str], facts: DebugFacts) -> list[Proposal]:
    """Return proposals, those with gets and puts first, then by name; `functions` have code of their own."""
    names = _Names(functions, facts)
    found: dict[str, Proposal] = {}
    for stem, get, put in names.pairs(_GET_PUT):
        proposal = _counted(stem, get, put, names)
        if proposal is not None and not _covered(proposal, found.values()):
            found.setdefault(stem, proposal)
    counted = {proposal.struct for proposal in found.values() if proposal.struct}
    for stem, make, end in names.pairs(_MAKE_END):
        proposal = _made(stem, make, end, names)
        if proposal is None or proposal.struct in counted or _covered(proposal, found.values()):
            continue
        same = next((p for p in found.values() if proposal.struct and p.struct == proposal.struct), None)
        if same is not None:
            found[same.name] = replace(same, puts=(*same.puts, end))
        else:
            found.setdefault(stem, proposal)
    return sorted(found.values(), key=lambda p: (not p.gets, not p.confirmed, p.name))


class _Names:
    """The functions of a binary, by what they return and where their names suggest that they make something."""

    def __init__(self, functions: Collection[str], facts: DebugFacts) -> None:
        self.facts = facts
        self.known = set(functions) | {name for name in facts.inlined if name in facts.functions}
        self._sorted = sorted(self.known)
        self._makers = [name for name in self._sorted if _MAKES.search(name)]
        self._by_struct: dict[str, list[str]] = {}
        for name in self._makers:
            function = facts.functions.get(name)
            if function is not None and function.returns.pointers == 1:
                self._by_struct.setdefault(function.returns.struct, []).append(name)

    def pairs(self, conventions: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str, str]]:
        """Yield what the two names have in common, and both."""
        for first, second in conventions:
            for name in self._sorted:
                stem = name.removesuffix(first)
                if stem and stem != name and stem + second in self.known:
                    yield stem.rstrip("_"), name, stem + second

    def creates(self, stem: str, struct: str) -> Iterator[str]:
        """Yield the functions that make such an object by their names, and return one where DWARF tells."""
        if struct:
            yield from self._by_struct.get(struct, ())
        for name in self._makers:
            unknown = not struct or name not in self.facts.functions
            if unknown and name.startswith((stem + "_new", stem + "__new", stem + "_create", stem + "__create")):
                yield name
        for suffix in ("_alloc", "__alloc"):
            name = stem + suffix
            if name in self.known and (not struct or _returns(self.facts.functions.get(name), struct)):
                yield name

    def inlined(self, names: Iterable[str]) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.facts.inlined[name]) for name in names if self.facts.inlined[name])


def _covered(proposal: Proposal, others: Collection[Proposal]) -> bool:
    mine = {*proposal.gets, *proposal.puts}
    return any(mine & {*other.gets, *other.puts} for other in others)


def _first_struct(name: str, facts: DebugFacts) -> str:
    function = facts.functions.get(name)
    first = function.parameters[0] if function and function.parameters else None
    return first.struct if first and first.pointers == 1 else ""


def _returns(function: FunctionFacts | None, struct: str) -> bool:
    return function is not None and function.returns.struct == struct and function.returns.pointers == 1


def _is_known(name: str, facts: DebugFacts) -> bool:
    return name in facts.functions


def _counted(stem: str, get: str, put: str, names: _Names) -> Proposal | None:
    """Return the proposal for a get and a put; None where DWARF contradicts the names."""
    facts = names.facts
    struct = _first_struct(get, facts)
    if _is_known(get, facts) and _is_known(put, facts) and (not struct or _first_struct(put, facts) != struct):
        return None
    counter = _counter_of(struct, facts)
    if not struct and get.endswith("_get") and not get.endswith("__get"):
        return None  # x_get is more often a look-up than a reference
    if struct and counter is None and struct in facts.structs:
        return None
    deletes = tuple(sorted(end for end in (stem + suffix for suffix in _ENDS)
                           if end in names.known and end != put and _agrees(end, struct, facts)))  # fmt: skip
    creates = tuple(sorted(names.creates(stem, struct)))
    inlined = names.inlined((get, put, *deletes, *creates))
    return Proposal(stem, creates, (get,), (put,), deletes, struct, counter, inlined)


def _agrees(end: str, struct: str, facts: DebugFacts) -> bool:
    return not struct or not _is_known(end, facts) or _first_struct(end, facts) == struct


def _made(stem: str, make: str, end: str, names: _Names) -> Proposal | None:
    facts = names.facts
    struct = _first_struct(end, facts)
    if _is_known(make, facts) and (not struct or not _returns(facts.functions[make], struct)):
        return None
    creates = tuple(sorted({make, *names.creates(stem, struct)}))
    return Proposal(stem, creates, (), (end,), (), struct, None, names.inlined((*creates, end)))


def _counter_of(struct: str, facts: DebugFacts) -> Member | None:
    """Return the member that counts: by its type and name, else by its type, else by its name."""

    def rank(member: Member) -> tuple[bool, bool, int]:
        named = bool(_COUNTER_NAME.fullmatch(member.name.lower()))
        return (not (named and member.type_name in _COUNTER_TYPES), not named, member.offset)

    fit = [
        m for m in facts.structs.get(struct, ())
        if m.type_name in _COUNTER_TYPES or (_COUNTER_NAME.fullmatch(m.name.lower()) and _is_integer(m.type_name))
    ]  # fmt: skip
    return min(fit, key=rank, default=None)


def _is_integer(type_name: str) -> bool:
    return bool(re.search(r"int|long|short|gint|guint|u32|s32|size_t|atomic|Atomic", type_name))
