"""Unseen calls of counted types: functions, and inlined copies of them, that have no probe."""

from __future__ import annotations

from tracer.model.snapshot import Coverage, UncoveredInstances

_CHANGES = ("get", "put", "delete")


def unseen_calls(coverage: Coverage) -> tuple[UncoveredInstances, ...]:
    """Return the gets, puts and deletes of types that no probe sees; `copies` of a function as a whole are 0."""
    copies = [one for one in coverage.uncovered_instances if one.type and one.operation in _CHANGES]
    told = {(one.type, one.operation, one.function) for one in copies}
    whole = [
        UncoveredInstances(one.operation, one.type, one.function, 0, one.reason)
        for one in coverage.unresolved
        if one.type and one.operation in _CHANGES and (one.type, one.operation, one.function) not in told
    ]
    return (*copies, *whole)
