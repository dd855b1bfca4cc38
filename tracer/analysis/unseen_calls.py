"""Unseen calls of types and of allocators: functions, and inlined copies of them, that have no probe."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.model.operations import Operation
from tracer.model.snapshot import Coverage, SiteInfo, UncoveredInstances

Family = tuple[str, str]
"""Kind of entry, and the described allocator; "" for malloc and its relatives, and for mappings."""
_CHANGES = ("get", "put", "delete")
_MAKES = ("create", "alloc", "realloc", "map", "remap")
_FREES = ("free", "realloc", "unmap", "remap")
_OF_MAPPINGS = ("map", "unmap", "remap")


def unseen_calls(coverage: Coverage) -> tuple[UncoveredInstances, ...]:
    """Return the gets, puts and deletes of types that no probe sees; `copies` of a function as a whole are 0."""
    return tuple(one for one in _unseen(coverage) if one.type and one.operation in _CHANGES)


def unseen_makes(coverage: Coverage) -> tuple[UncoveredInstances, ...]:
    """Return the calls by which objects, blocks and mappings are made where no probe is."""
    return tuple(one for one in _unseen(coverage) if one.operation in _MAKES)


def unseen_frees(coverage: Coverage) -> tuple[UncoveredInstances, ...]:
    """Return the calls by which blocks and mappings end where no probe is."""
    return tuple(one for one in _unseen(coverage) if one.operation in _FREES)


def family(one: UncoveredInstances) -> Family:
    """Return what a function of blocks or of mappings belongs to; a relative of malloc has itself as its type."""
    return _family(one.operation, one.type, one.function)


def freed_unseen(coverage: Coverage, sites: Iterable[SiteInfo]) -> frozenset[Family]:
    """Return kind and allocator's name of the entries that may have been freed where no probe is."""
    families = {family(one) for one in unseen_frees(coverage)}
    named = ((_family(Operation(site.operation).name.lower(), site.type or "", site.function), site) for site in sites)
    return frozenset((of[0], site.type or site.function) for of, site in named if of in families)


def _family(operation: str, type_: str, function: str) -> Family:
    if operation in _OF_MAPPINGS:
        return "mapping", ""
    return "allocation", "" if type_ == function.partition(".")[0] else type_


def _unseen(coverage: Coverage) -> tuple[UncoveredInstances, ...]:
    copies = coverage.uncovered_instances
    told = {(one.type, one.operation, one.function) for one in copies}
    whole = [
        UncoveredInstances(one.operation, one.type, one.function, 0, one.reason)
        for one in coverage.unresolved
        if (one.type, one.operation, one.function) not in told
    ]
    return (*copies, *whole)
