"""Retainers of what grows: dominators on the graph of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.analysis.holder_graph import MOST_ENTRIES, HolderGraph, Node, dominators
from tracer.model.findings import Growing, Leak, Retainer
from tracer.model.trends import GROWING

_MOST_SHOWN = 3
_ROOTS = ("global", "thread-local", "mapping")


def growing(leaks: Iterable[Leak]) -> dict[str, int]:
    """Return the bytes of those entries that grow, by id."""
    sizes: dict[str, int] = {}
    for leak in leaks:
        if leak.trend is not None and leak.trend.word == GROWING and leak.bytes:
            sizes[leak.id] = sizes.get(leak.id, 0) + leak.bytes
    return sizes


def retainers(leaks: Iterable[Leak], grown: Mapping[str, int]) -> Growing | None:
    """Return who retains what has grown, by bytes: those without whom it would be reachable from no root. None where
    nothing grows whose holders are known. `grown`: bytes by id of entry.

    An entry is dominated by what dominates all its holders; those of its own do not count.
    """
    if not grown:
        return None
    graph = HolderGraph(leaks)
    known = {id_: size for id_, size in grown.items() if graph.holders.get((id_,))}
    if not known or len(graph.holders) > MOST_ENTRIES:
        return None
    above = dominators(graph.holders)
    sums: dict[Node, int] = {}
    for id_, size in known.items():
        for node in above.get((id_,), frozenset()) - {(id_,)}:
            sums[node] = sums.get(node, 0) + size
    ranked = sorted(sums, key=lambda node: (-sums[node], graph.described[node].kind not in _ROOTS, repr(node)))
    found = tuple(Retainer(graph.described[node], sums[node]) for node in ranked[:_MOST_SHOWN])
    return Growing(sum(grown.values()), found)
