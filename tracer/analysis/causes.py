"""One cause, one entry: which entries of references share a missing put, and which others only keep alive.

Whom an object keeps alive is known where memory was read and its pointers lead to objects of one entry. Else it is told
by types: those that point at it, in whose making it was taken, or in whose puts it would be put.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace

from tracer.analysis.identity import frame_key, stable_id
from tracer.model.addresses import Space
from tracer.model.findings import LOST, Leak, UnpairedGet
from tracer.model.frames import Frame

_Type = tuple[Space, str, str | None]
"""Process, state and type of entries."""


def with_causes(leaks: list[Leak]) -> list[Leak]:
    """Name the causes of the entries of references, and put these first: causes, those that lost something before those
    of which all is still pointed at, by all that is left because of them; then what they keep alive. The order is
    otherwise kept."""
    listed = [leak for leak in leaks if leak.kind == "reference" and leak.suppressed_by is None]
    by_number = {leak.number: leak for leak in listed if leak.number}
    owners = {id(leak): by_number[leak.keeper] for leak in listed if leak.keeper in by_number}
    have = {id(owner) for owner in owners.values()}
    judged = [leak for leak in listed if id(leak) not in owners and (leak.unpaired or id(leak) in have)]
    if not judged:
        return leaks
    keepers = _Keepers([leak for leak in listed if leak.unpaired or id(leak) in have])
    above = {id(leak): keepers.of(leak) for leak in judged}
    roots = [leak for leak in judged if above[id(leak)] is None]
    causes = _causes(roots)
    known = {id(leak): causes.get(id(owners.get(id(leak), leak))) for leak in listed}
    main = _main_causes(listed, known)

    def kept(leak: Leak) -> str | None:
        keeper = above.get(id(owners.get(id(leak), leak)))
        return main.get(keeper) if keeper is not None else known.get(id(leak)) if id(leak) in owners else None

    named = [
        replace(leak, cause=causes.get(id(leak)), kept_alive_by=kept(leak)) if leak.kind == "reference" else leak
        for leak in leaks
    ]
    total = Counter[tuple[Space, str | None]]()
    for leak in named:
        total[_of_cause(leak)] += leak.count
    biggest = {_of_cause(leak): n for n, leak in reversed(list(enumerate(named)))}
    lost = {_of_cause(leak) for leak in named if leak.reachability == LOST}

    def rank(leak: Leak) -> tuple[bool, bool, bool, int, int]:
        key = _of_cause(leak)
        if leak.kind != "reference" or key[1] is None:
            return leak.kind != "reference", leak.kind == "reference", False, 0, 0
        return False, leak.cause is None, key not in lost, -total[key], biggest[key]

    return sorted(named, key=rank)


def _of_cause(leak: Leak) -> tuple[Space, str | None]:
    return leak.space, leak.cause or leak.kept_alive_by


def _type(leak: Leak) -> _Type:
    return leak.space, leak.state, leak.type


class _Keepers:
    """What keeps objects alive, by type: whose own keepers are followed up to what nothing keeps."""

    def __init__(self, leaks: Iterable[Leak]) -> None:
        leaks = list(leaks)
        self._types = {_type(leak) for leak in leaks}
        votes: defaultdict[_Type, Counter[_Type | None]] = defaultdict(Counter)
        for leak in leaks:
            if not self._is_of_a_list(leak):
                votes[_type(leak)][self._first(leak)] += leak.count
        self._mostly = {type_: counted.most_common(1)[0][0] for type_, counted in votes.items()}

    def of(self, leak: Leak) -> _Type | None:
        """Return the type whose objects keep an entry alive in the end; None for what nothing keeps, and in a ring."""
        keeper = self._mostly.get(_type(leak)) if self._is_of_a_list(leak) else self._first(leak)
        seen = {_type(leak)}
        while keeper is not None and keeper not in seen:
            seen.add(keeper)
            above = self._mostly.get(keeper)
            if above is None:
                return keeper
            keeper = above
        return None

    def _is_of_a_list(self, leak: Leak) -> bool:
        """Tell whether only objects of its own type are known to hold it: what keeps those, keeps it."""
        return leak.type in leak.held_in and self._first(leak) is None

    def _first(self, leak: Leak) -> _Type | None:
        """Return the first other type that is itself left."""
        wanted = ((leak.space, leak.state, type_) for type_ in leak.held_in if type_ != leak.type)
        return next((type_ for type_ in wanted if type_ in self._types), None)


def _causes(leaks: list[Leak]) -> dict[int, str]:
    """Return the cause of each entry, by its id(): of those that accuse one place, or miss one put, it is the same."""
    group: dict[Hashable, int] = {}
    parent = list(range(len(leaks)))

    def top(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for number, leak in enumerate(leaks):
        for key in _keys(leak):
            one, other = sorted((top(number), top(group.setdefault(key, number))))
            parent[other] = one
    return {id(leak): _name(leaks[top(number)]) for number, leak in enumerate(leaks)}


def _keys(leak: Leak) -> list[Hashable]:
    if not leak.unpaired:
        return [leak.id]
    get = leak.unpaired[0]
    keys: list[Hashable] = [(*_type(leak), "taken", *(map(_line, _takers(get)) if get.taken_by else get.stack))]
    if get.put_at is not None and get.confidence != "weak":
        keys.append((*_type(leak), "put", _line(get.put_at)))
    return keys


def _takers(get: UnpairedGet) -> tuple[Frame, ...]:
    """Return who took it, and where that is a library of the distribution, who called it first: what one library takes
    for two callers is missing in two places."""
    return tuple(frame for frame in (get.taken_by, get.taken_for) if frame is not None)


def _line(frame: Frame) -> Hashable:
    return frame_key(frame), frame.file, frame.line if frame.line is not None else frame.offset


def _name(leak: Leak) -> str:
    """Return an id that stays over runs: of the type, and of who took what was never put, else of the entry."""
    if not leak.unpaired:
        return stable_id("cause", leak.type, (leak.id,))
    get = leak.unpaired[0]
    return stable_id("cause", leak.type, map(frame_key, _takers(get) or get.stack))


def _main_causes(leaks: list[Leak], causes: dict[int, str | None]) -> dict[_Type, str]:
    """Return of each type the cause by which most objects are left."""
    counts: defaultdict[_Type, Counter[str]] = defaultdict(Counter)
    for leak in leaks:
        cause = causes[id(leak)]
        if cause is not None:
            counts[_type(leak)][cause] += leak.count
    return {type_: counted.most_common(1)[0][0] for type_, counted in counts.items()}
