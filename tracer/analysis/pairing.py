"""Verdicts on the groups of outstanding objects: which reference of each was never put."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Indices
from tracer.analysis.history import Calls
from tracer.analysis.representatives import Representatives
from tracer.analysis.unpaired import Verdict, judge
from tracer.model.snapshot import Records

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
    for type_, keys in by_type.items():
        judged = judge(evidence, type_, [representatives.of(groups[key]) for key in keys])
        found.update(zip(keys, judged, strict=True))
    return found
