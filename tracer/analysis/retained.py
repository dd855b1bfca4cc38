"""Retainers of what grows: dominators on the graph of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.analysis.holder_graph import MOST_ENTRIES, HolderGraph, Node, dominators
from tracer.model.findings import INDIRECT, LOST, Growing, Leak, Retainer
from tracer.model.trends import GROWING

_MOST_SHOWN = 3
_ROOTS = ("global", "thread-local", "mapping")


def growing(leaks: Iterable[Leak]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of those entries that grow, by id: all, and what is lost of them."""
    grown = [leak for leak in leaks if leak.trend is not None and leak.trend.word == GROWING]
    return bytes_of(grown), lost_bytes_of(grown)


def bytes_of(leaks: Iterable[Leak]) -> dict[str, int]:
    """Return the bytes of entries, by id."""
    sizes: dict[str, int] = {}
    for leak in leaks:
        if leak.bytes:
            sizes[leak.id] = sizes.get(leak.id, 0) + leak.bytes
    return sizes


def lost_bytes_of(leaks: Iterable[Leak]) -> dict[str, int]:
    """Return the bytes of what nothing holds any more, by id of entry."""
    return bytes_of(leak for leak in leaks if leak.reachability in (LOST, INDIRECT))


def more(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Return what is more than before, and by how much."""
    return {id_: size - before.get(id_, 0) for id_, size in now.items() if size > before.get(id_, 0)}


def retainers(leaks: Iterable[Leak], grown: Mapping[str, int], lost: Mapping[str, int]) -> Growing | None:
    """Return who retains what has grown, by bytes: those without whom it would be reachable from no root. None where
    nothing grows whose holders are known. `grown`: bytes by id of entry; `lost`: those of them that nothing holds, as
    an entry may be lost in part.

    An entry is dominated by what dominates all its holders; those of its own do not count.
    """
    if not grown:
        return None
    looked_at = [leak for leak in leaks if leak.holders is not None]
    if len({leak.id for leak in looked_at}) > MOST_ENTRIES:
        return None
    graph = HolderGraph(looked_at)
    held = more(grown, lost)
    known = {id_: size for id_, size in held.items() if graph.holders.get((id_,))}
    if not known:
        return None
    above = dominators(graph.holders)
    sums: dict[Node, int] = {}
    for id_, size in known.items():
        for node in above.get((id_,), frozenset()) - {(id_,)}:
            sums[node] = sums.get(node, 0) + size
    ranked = sorted(sums, key=lambda node: (-sums[node], graph.described[node].kind not in _ROOTS, repr(node)))
    found = tuple(Retainer(graph.described[node], sums[node]) for node in ranked[:_MOST_SHOWN])
    return Growing(sum(grown.values()), found)
