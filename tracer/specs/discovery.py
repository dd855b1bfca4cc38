"""Proposes specs for a binary: functions that pair by their names and types, as DWARF or headers tell these."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field, replace

from tracer.dwarf.debug_facts import DebugFacts, FunctionFacts, Member, Pointee
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.specs import function_words as words

_COUNTER_TYPES = frozenset(
    ("refcount_t", "kref", "atomic_t", "atomic_int", "atomic_uint", "gatomicrefcount", "grefcount", "refcount_struct",
     "CRYPTO_REF_COUNT", "DBusAtomic", "atomic_long_t", "atomic_ulong", "atomic_long")
)  # fmt: skip
_COUNTER_NAME = late_pattern(
    r"_*(?:n_?)?ref(?:s|cnt|count|_?count|_?cnt|erences?|_?counter)?_*|.*_ref_?(?:cnt|count)|use_?count"
)
_THROUGH_FIRST = "{}(object=*arg0)"
_THROUGH = "{}(object=*arg{}, fails=negative)"


@dataclass(frozen=True)
class Proposal:
    """One type: the functions by operation, as a spec writes them, and what speaks for them."""

    name: str
    creates: tuple[str, ...]
    gets: tuple[str, ...]
    puts: tuple[str, ...]
    deletes: tuple[str, ...] = ()
    struct: str = ""
    counter: Member | None = None
    inlined: tuple[tuple[str, int], ...] = field(default=())
    """Functions that were inlined somewhere, and how often."""
    is_declared: bool = False
    """Headers tell its types, not DWARF."""
    numbers: tuple[str, ...] = ()
    """Functions that are no creates, since their code shows that they return a number."""
    is_by_code: bool = False
    """The code of its functions tells where they count; no types do."""
    is_in_place: bool = False
    """The memory of its objects is the caller's: its creates set that up, and its puts clear it."""

    @property
    def confirmed(self) -> bool:
        """Whether DWARF or headers bear the names out: the functions work on one struct."""
        return bool(self.struct)

    @property
    def doubt(self) -> str:
        """Return why it is no type that could be counted, as far as names and code tell; empty where it may be one."""
        if self.is_in_place:
            return (
                f"a second {self.puts[0]} may be harmless, and would be called an over-put: take it if each object is"
                " cleared once, or let --try tell"
            )
        if self.is_by_code and not self.creates:
            return "no constructor is seen to set the count to 1: add what makes one"
        if self.confirmed or self.is_declared:
            return ""
        if self.creates and not self.gets and all(name.endswith("_init") for name in self.creates):
            return "names alone do not tell whether an init makes an object, or sets up what the caller has"
        if self.creates:
            return ""
        if not self.numbers:
            return "no function that makes one is known: add its create"
        named = ", ".join(self.numbers)
        return f"{named} returns a number" if len(self.numbers) == 1 else f"{named} return numbers"


def without_numbers(
    proposals: Iterable[Proposal], facts: DebugFacts, is_number: Callable[[str], bool]
) -> Iterator[Proposal]:
    """Yield the proposals without the creates that return a number, of those whose types nothing tells."""
    for proposal in proposals:
        unknown = (name for name in proposal.creates if name.isidentifier() and name not in facts.functions)
        numbers = tuple(filter(is_number, unknown))
        creates = tuple(name for name in proposal.creates if name not in numbers)
        yield replace(proposal, creates=creates, numbers=numbers) if numbers else proposal


def discover(functions: Collection[str], facts: DebugFacts, declared: Collection[str] = ()) -> list[Proposal]:
    """Return proposals, those with gets and puts first, then by name; `functions` have code of their own.

    `declared` are those whose facts come from headers.
    """
    names = _Names(functions, facts, frozenset(declared))
    found: dict[str, Proposal] = {}
    for stem, get, put in names.pairs(words.GET_PUT):
        if words.WEAK.search(stem):
            continue
        proposal = _counted(stem, get, put, names)
        if proposal is not None and not _covered(proposal, found.values()):
            found.setdefault(stem, proposal)
    counted = {proposal.struct for proposal in found.values() if proposal.struct}
    for stem, make, end in names.pairs(words.MAKE_END):
        proposal = _made(stem, make, end, names)
        if proposal is None or proposal.struct in counted or _covered(proposal, found.values()):
            continue
        same = next((p for p in found.values() if proposal.struct and p.struct == proposal.struct), None)
        if same is not None:
            found[same.name] = replace(same, puts=tuple(dict.fromkeys((*same.puts, *proposal.puts))))
        else:
            found.setdefault(stem, proposal)
    for proposal in _ended(names, {proposal.struct for proposal in found.values()}):
        found.setdefault(proposal.struct if proposal.name in found else proposal.name, proposal)
    proposals = [replace(_completed(proposal, names), name=name) for name, proposal in found.items()]
    return sorted(proposals, key=lambda p: (not p.gets, not p.confirmed, p.name))


class _Names:
    """The functions of a binary, by what they return and where their names suggest that they make something."""

    def __init__(self, functions: Collection[str], facts: DebugFacts, declared: frozenset[str]) -> None:
        self.facts = facts
        self.declared = declared
        self.known = set(functions) | {name for name in facts.inlined if name in facts.functions}
        self._sorted = sorted(self.known)
        self._makers = [name for name in self._sorted if words.MAKES.search(name)]
        self._by_struct: dict[str, list[str]] = {}
        for name in self._makers:
            function = facts.functions.get(name)
            if function is not None and function.returns.pointers == 1 and not function.returns.is_const:
                self._by_struct.setdefault(function.returns.struct, []).append(name)

    def pairs(self, conventions: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str, str]]:
        """Yield what the two names have in common, and both."""
        for first, second in conventions:
            for name in self._sorted:
                stem = name.removesuffix(first)
                if stem and stem != name and stem + second in self.known:
                    yield stem.rstrip("_"), name, stem + second

    def prototypes(self) -> Iterator[FunctionFacts]:
        """Yield the functions that a header declares."""
        return (self.facts.functions[name] for name in self._sorted if name in self.declared)

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


def _first(name: str, facts: DebugFacts) -> Pointee:
    function = facts.functions.get(name)
    return function.parameters[0] if function and function.parameters else Pointee()


def _first_struct(name: str, facts: DebugFacts) -> str:
    first = _first(name, facts)
    return first.struct if first.pointers == 1 else ""


def _returns(function: FunctionFacts | None, struct: str) -> bool:
    return function is not None and function.returns.struct == struct and function.returns.pointers == 1


def _counted(stem: str, get: str, put: str, names: _Names) -> Proposal | None:
    """Return the proposal for a get and a put; None where DWARF or headers contradict the names."""
    facts = names.facts
    struct = _first_struct(get, facts)
    known_get = facts.functions.get(get)
    if known_get is not None and any(parameter.struct == struct for parameter in known_get.parameters[1:] if struct):
        return None  # a copy of one into another
    untyped = not struct and _first(get, facts).pointers == _first(put, facts).pointers == 1
    if known_get is not None and put in facts.functions and not untyped:
        if struct and _first(put, facts) == Pointee(struct, 2) and _returns(known_get, struct):
            return _handles(stem, get, put, struct)
        if not struct or _first_struct(put, facts) != struct:
            return None
    counter = _counter_of(struct, facts)
    if not struct and get.endswith("_get") and not get.endswith("__get"):
        return None  # x_get is more often a look-up than a reference
    if struct and counter is None and struct in facts.structs:
        return None
    deletes = tuple(sorted(end for end in (stem + suffix for suffix in words.DELETES)
                           if end in names.known and end != put and _agrees(end, struct, facts)))  # fmt: skip
    creates = tuple(sorted(names.creates(stem, struct)))
    inlined = names.inlined((get, put, *deletes, *creates))
    return Proposal(stem, creates, (get,), (put,), deletes, struct, counter, inlined, get in names.declared)


def _handles(stem: str, get: str, put: str, struct: str) -> Proposal:
    """Return the proposal for references that are objects of their own, each ended through a pointer to it."""
    return Proposal(stem, (get,), (), (_THROUGH_FIRST.format(put),), struct=struct, is_declared=True)


def _agrees(end: str, struct: str, facts: DebugFacts) -> bool:
    return not struct or end not in facts.functions or _first_struct(end, facts) == struct


def _made(stem: str, make: str, end: str, names: _Names) -> Proposal | None:
    facts = names.facts
    first = _first(end, facts)
    struct = first.struct if first.pointers == 1 or (first.pointers == 2 and end in names.declared) else ""
    if make in facts.functions and (not struct or not _returns(facts.functions[make], struct)):
        return None
    if end in names.declared and (not struct or len(facts.functions[end].parameters) > 1):
        return None
    creates = tuple(sorted({make, *names.creates(stem, struct)}))
    inlined = names.inlined((*creates, end))
    put = _THROUGH_FIRST.format(end) if first.pointers == 2 else end
    return Proposal(stem, creates, (), (put,), (), struct, None, inlined, end in names.declared)


def _ended(names: _Names, known: Collection[str]) -> Iterator[Proposal]:
    """Yield the types, as headers tell them, that have an end whose name pairs with that of no create."""
    ends: dict[str, list[str]] = {}
    for function in names.prototypes():
        end = _end_of(function.name)
        first = function.parameters[0] if function.parameters else Pointee()
        if end and first.pointers in (1, 2) and not first.is_const and len(function.parameters) == 1:
            ends.setdefault(first.struct, []).append(function.name)
    for struct, found in sorted(ends.items()):
        if struct in known:
            continue
        stem = _end_of(found[0]) or struct
        proposal = _completed(Proposal(stem, (), (), (), struct=struct, is_declared=True), names)
        if proposal.creates:
            puts = (_THROUGH_FIRST.format(n) if _first(n, names.facts).pointers == 2 else n for n in found)
            yield replace(proposal, puts=tuple(puts))


def _end_of(name: str) -> str:
    """Return what stands before the word that ends an object, "" where there is none."""
    match = words.ENDS.search(name)
    if match is not None:
        return name[: match.start()]
    match = words.CAMEL_ENDS.search(name)
    return name[: match.start()] + name[match.end() :] if match is not None else ""


def _completed(proposal: Proposal, names: _Names) -> Proposal:
    """Add the functions that only prototypes tell: creates that return or store such an object, other puts."""
    if not proposal.is_declared or not proposal.struct:
        return proposal
    creates, puts = dict.fromkeys(proposal.creates), dict.fromkeys(proposal.puts)
    through_pointer = any(put.endswith(")") for put in proposal.puts)
    for function in names.prototypes():
        if function.name in proposal.gets:
            continue
        if _makes(function, proposal):
            creates[function.name] = None
        elif (at := _out_parameter(function, proposal, through_pointer)) is not None:
            creates[_THROUGH.format(function.name, at)] = None
        elif proposal.gets and _puts(function, proposal):
            puts[function.name] = None
    deletes = tuple(name for name in proposal.deletes if name not in puts and name not in names.declared)
    return replace(proposal, creates=tuple(creates), puts=tuple(puts), deletes=deletes)


def _makes(function: FunctionFacts, proposal: Proposal) -> bool:
    if not _returns(function, proposal.struct) or function.returns.is_const:
        return False
    name = words.spaced(function.name)
    if words.BORROWS_FIRST.search(name):
        return False
    if words.MAKES.search(name.lower()) or function.name == proposal.name:
        return True
    return bool(words.MAKES_AND_RETURNS.search(name)) and not words.BORROWS.search(name)


def _out_parameter(function: FunctionFacts, proposal: Proposal, through_pointer: bool) -> int | None:
    """Return the number of the parameter through which a function gives what it makes."""
    name = words.spaced(function.name)
    if through_pointer or function.returns != Pointee() or _end_of(function.name):
        return None
    if not words.MAKES_THROUGH_POINTER.search(name) or words.BORROWS.search(name):
        return None
    if words.ERROR_TYPES.search(proposal.struct):
        return None
    out = Pointee(proposal.struct, 2)
    places = (at for at, parameter in enumerate(function.parameters) if parameter == out)
    return next((at for at in places if not (at and words.STARTS_UP.search(name))), None)


def _puts(function: FunctionFacts, proposal: Proposal) -> bool:
    """Whether it is another way to give a reference back: x_close_unref, x_unref_to_data; in a header, x_free."""
    first = function.parameters[0] if function.parameters else Pointee()
    if first != Pointee(proposal.struct, 1):
        return False
    ends = function.name in {proposal.name + suffix for suffix in words.DELETES}
    also = words.PUTS.search(function.name) and not words.BORROWS.search(function.name)
    return bool(also) or (ends and bool(words.PUBLIC_PUTS.search(function.name)))


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
