"""Verdicts on the groups of outstanding objects: which reference of each was never put."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Indices, group_rows
from tracer.analysis.history import Calls
from tracer.analysis.putters import Putters
from tracer.analysis.representatives import Representative, Representatives
from tracer.analysis.unpaired import judge
from tracer.analysis.unpaired_verdict import Verdict
from tracer.model.snapshot import Records
from tracer.model.statistics import NEVER_PUT

_MOST_GROUPS = 200
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
    representatives = Representatives(objects, snapshot.history, owner, calls, snapshot.condensed)
    biggest = sorted(groups, key=lambda key: -len(groups[key]))[:_MOST_GROUPS]
    by_type: defaultdict[int, list[_Key]] = defaultdict(list)
    for key in biggest:
        by_type[int(objects["type"][groups[key][0]])].append(key)
    found: dict[_Key, Verdict] = {}
    lives = {type_: [representatives.of(groups[key]) for key in keys] for type_, keys in by_type.items()}
    putters = _putters(evidence, lives)
    for type_, keys in by_type.items():
        found.update(zip(keys, judge(evidence, type_, lives[type_], putters), strict=True))
    return found


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
