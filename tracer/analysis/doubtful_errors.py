"""Errors of counting that may be none, since calls of the type were not seen and it has no counter that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

import numpy as np

from tracer.analysis.evidence import Evidence
from tracer.model.events import ErrorKind
from tracer.model.snapshot import Records

_OF_GETS = frozenset({ErrorKind.OVER_PUT, ErrorKind.USE_AFTER_ZERO})
_OF_ENDS = frozenset({
    ErrorKind.DELETE_WHILE_REFERENCED, ErrorKind.REINITIALISED, ErrorKind.FREED_WHILE_COUNTED,
    ErrorKind.FREED_PAST_COUNTER,
})  # fmt: skip
_DOUBTFUL: Mapping[str, Set[ErrorKind]] = {"get": _OF_GETS, "put": _OF_ENDS, "delete": _OF_ENDS}
"""Which errors a call of an operation makes where it is not seen."""


def without_doubtful(evidence: Evidence, events: Records) -> tuple[Records, tuple[str, ...]]:
    """Return the errors that are certain, and what is said of the others."""
    counters = {site.type for site in evidence.snapshot.sites if site.counter}
    doubtful = {(one.type, kind) for one in evidence.unseen if one.type not in counters
                for kind in _DOUBTFUL[one.operation]}  # fmt: skip
    if not doubtful or not len(events):
        return events, ()
    kept, left = np.ones(len(events), np.bool_), Counter[str]()
    for row, event in enumerate(events):
        name = evidence.type_name(int(event["broken_type"])) if event["broken_type"] else ""
        if (name, int(event["error"])) in doubtful:
            kept[row] = False
            left[name] += max(int(event["represented"]), 1)
    return events[kept], tuple(_said(name, count) for name, count in left.items())


def _said(name: str, count: int) -> str:
    errors, are = ("errors", "are") if count > 1 else ("error", "is")
    return f"{count:,} {errors} of {name} may be none, and {are} not shown: not all of its calls were seen"
