"""Call sites: what tells entries apart that the same functions made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tracer.analysis.identity import stable_id
from tracer.analysis.makers import Made, Makers
from tracer.analysis.reached import Reached
from tracer.analysis.stacks import CallSite, SymbolizedStacks
from tracer.model.reachability import Reach
from tracer.model.records import MappedFlag
from tracer.model.snapshot import Snapshot

_HELD = (Reach.REACHABLE, Reach.STACK)
_Flags = npt.NDArray[np.bool_]
_Functions = tuple[str, str | None, tuple[str, ...]]
"""Kind, type, and the keys of the functions: that of the maker among them, where it is no allocator or stub."""


class EntryIds:
    """Ids of entries: of kind, type and functions, and of the number of the call site among equal ones.

    Sites are numbered in order of their lines, the leaf's first: a line that moves changes no number. Those of what
    nothing holds come before those of what something does, which is no leak, and all of what is outstanding before
    what was freed: so a run with no more leaking sites than another has no id that the other lacks.
    """

    def __init__(
        self, snapshot: Snapshot, table: SymbolizedStacks, makers: Makers, blocks: Reached, pieces: Reached
    ) -> None:
        """`blocks`, `pieces`: of the snapshot's allocations and mappings."""
        self._table = table
        self._makers = makers
        self._ids: dict[Made, str] = {}
        self._numbers: defaultdict[_Functions, dict[CallSite, int]] = defaultdict(dict)
        held, kept = (np.isin(found.reach, _HELD) for found in (blocks, pieces))
        for places in _rounds(snapshot, makers, held, kept):
            self._number(places)

    def of(self, kind: str, type_: str | None, stack: int, site: int) -> str:
        """Return the id of what was made at a stack by the function of a site; 12 hex digits."""
        made = kind, type_, stack, site
        if made not in self._ids:
            functions = self._functions(made)
            number = self._numbers[functions].get(self._table.call_site(stack), 0)
            self._ids[made] = stable_id(kind, type_, (*functions[2], *([f"call site {number + 1}"] if number else [])))
        return self._ids[made]

    def _functions(self, made: Made) -> _Functions:
        kind, type_, stack, site = made
        keys, maker = self._table.get(stack).keys, self._makers.key(site, type_)
        return kind, type_, (maker, *keys) if maker else keys

    def _number(self, places: Iterable[Made]) -> None:
        found: defaultdict[_Functions, set[CallSite]] = defaultdict(set)
        for made in places:
            found[self._functions(made)].add(self._table.call_site(made[2]))
        for functions, sites in found.items():
            known = self._numbers[functions]
            for site in sorted(sites - known.keys()):
                known[site] = len(known)


def _rounds(snapshot: Snapshot, makers: Makers, held: _Flags, kept: _Flags) -> Iterator[Iterable[Made]]:
    """Yield what is numbered before what. `held`, `kept`: the allocations and mappings that something holds."""
    blocks, pieces = snapshot.allocations, snapshot.mapped
    kept = kept | ((pieces["flags"] & np.uint32(MappedFlag.INHERITED)) != 0)
    yield makers.places("reference", snapshot.objects)
    yield makers.places("allocation", blocks[~held])
    yield makers.places("mapping", pieces[~kept])
    yield makers.places("reference", snapshot.inherited_objects)
    yield makers.places("allocation", blocks[held])
    yield makers.places("allocation", snapshot.inherited)
    yield makers.places("mapping", pieces[kept])
    if snapshot.checkpoints:
        for rows in (snapshot.checkpoint_totals, snapshot.totals):
            types = rows["type"].tolist() if "type" in (rows.dtype.names or ()) else [0] * len(rows)
            columns = (rows["stack"].tolist(), types, rows["site"].tolist())
            yield (makers.of_totals(*row) for row in zip(*columns, strict=True))
