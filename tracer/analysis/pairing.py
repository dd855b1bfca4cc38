"""Verdicts on the groups of outstanding objects: which reference of each was never put."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tracer.analysis.evidence import Evidence
from tracer.analysis.function_words import named_for
from tracer.analysis.groups import Indices, group_rows
from tracer.analysis.held_slots import HeldSlots
from tracer.analysis.history import Calls
from tracer.analysis.makings import Makings
from tracer.analysis.putters import Putters
from tracer.analysis.representatives import Representative, Representatives
from tracer.analysis.unpaired import judge
from tracer.analysis.unpaired_verdict import Verdict
from tracer.model.snapshot import Records
from tracer.model.statistics import NEVER_PUT

_MOST_GROUPS = 200
_ENOUGH = 0.5
"""What shares left of a type must be at least, for it to keep alive another one of which all is left."""
_Key = TypeVar("_Key")


def verdicts(
    evidence: Evidence, objects: Records, owner: Indices, calls: Calls, groups: Mapping[_Key, Indices]
) -> dict[_Key, Verdict]:
    """Return a verdict per group (rows of `objects`, all of one type); of the 200 biggest groups only.

    `owner`, `calls`: of the snapshot's history, as from tracer.analysis.history.
    """
    if not groups:
        return {}
    snapshot = evidence.snapshot
    slots = HeldSlots(snapshot)
    representatives = Representatives(objects, snapshot.history, owner, calls, snapshot.condensed, slots)
    biggest = sorted(groups, key=lambda key: -len(groups[key]))[:_MOST_GROUPS]
    by_type: defaultdict[int, list[_Key]] = defaultdict(list)
    for key in biggest:
        by_type[int(objects["type"][groups[key][0]])].append(key)
    found: dict[_Key, Verdict] = {}
    lives = {type_: [representatives.of(groups[key]) for key in keys] for type_, keys in by_type.items()}
    putters = _putters(evidence, lives)
    for type_, keys in by_type.items():
        found.update(zip(keys, judge(evidence, type_, lives[type_], putters), strict=True))
    return _with_takers(evidence, objects, found, groups, Makings(objects, snapshot.history, owner))


def _with_takers(
    evidence: Evidence, objects: Records, found: Mapping[_Key, Verdict], groups: Mapping[_Key, Indices],
    makings: Makings,
) -> dict[_Key, Verdict]:  # fmt: skip
    """Say of which other types the objects are that took the references."""
    takings = {key: verdict.taking for key, verdict in found.items() if verdict.taking is not None}
    makers = {key: verdict.making for key, verdict in found.items() if verdict.making is not None}
    around = makings.around(groups, takings, makers)
    left = _shares_left(evidence, objects)

    def by_types(key: _Key, verdict: Verdict) -> tuple[str, ...]:
        own = int(objects["type"][groups[key][0]])
        able = {evidence.type_name(type_) for type_ in left if type_ != own and _ENOUGH * left[own] <= left[type_]}
        put_by = [type_ for type_ in verdict.around if type_ in able]
        taking = verdict.taking
        taker = named_for(taking.path[taking.kept][0], able) if taking is not None and taking.path else None
        return (*put_by, *([] if taker is None else [taker]))

    return {
        key: replace(
            verdict, made_with=tuple(map(evidence.type_name, around.get(key, ()))), around=by_types(key, verdict)
        )
        for key, verdict in found.items()
    }


def _shares_left(evidence: Evidence, objects: Records) -> dict[int, float]:
    """Return of each type the share of all its objects that is left."""
    ended = Counter[int]()
    for type_, _, _, count in evidence.snapshot.balanced.deaths.tolist():
        ended[type_] += count
    left = Counter[int](objects["type"].tolist())
    return {type_: count / (count + ended[type_]) for type_, count in left.items()}


def _putters(evidence: Evidence, lives: Mapping[int, Sequence[Sequence[Representative]]]) -> Putters:
    pairs = evidence.snapshot.balanced.pairs
    given = group_rows(pairs["type"], pairs["put_stack"]).first
    puts: defaultdict[str, set[int]] = defaultdict(set)
    for type_, stack in zip(pairs["type"][given].tolist(), pairs["put_stack"][given].tolist(), strict=True):
        if stack != NEVER_PUT:
            puts[evidence.type_name(type_)].add(stack)
    for type_, groups in lives.items():
        puts[evidence.type_name(type_)] |= {put for group in groups for one in group for put in one.life.puts}
    return Putters(evidence.stacks, puts)
