"""Keepers of counted objects: which other object an object lives by, told by who points at whom.

An object lives by itself where it has more references than words that point at it, where something points at it that is
no object's (data, a mapping, a lost table), and in a ring: nothing tells which pointer of a ring is a reference. Any
other lives by those that point at it, and these by theirs, up to one that lives by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import distinct, is_any_of
from tracer.reachability.block_table import Indices
from tracer.reachability.edges import Edges, Flags
from tracer.reachability.graph import Graph
from tracer.reachability.memory import RegionKind

_MOST_EDGES = 400_000
"""Between blocks that lead to objects: more would take seconds."""
_COME_AND_GO = (RegionKind.STACK, RegionKind.REGISTER, RegionKind.ENDING_STACK, RegionKind.ENDING_REGISTER)


def loose(edges: Edges) -> Flags:
    """Return which words are on stacks and in registers: they hold, but nobody need know of them any more."""
    return is_any_of(edges.kind, _COME_AND_GO)


def keepers(edges: Edges, has_object: Flags, lives: Flags, holds: Flags) -> Indices:
    """Return of each block the one with an object by which the objects in it live, -1 where they live by themselves.

    `has_object`: of each block; `lives`: and its objects have more references than are known. `holds`: it is held
    whatever points at it. Nothing is told where too many blocks lead to objects.
    """
    count = len(has_object)
    found = np.full(count, -1, np.int64)
    if not has_object.any():
        return found
    between = np.flatnonzero((edges.source >= 0) & (edges.source != edges.target))
    source, target = edges.source[between].astype(np.int64), edges.target[between].astype(np.int64)
    leads = _that_lead_to(source, target, np.flatnonzero(has_object), count)
    inside = leads[target]
    nodes = np.flatnonzero(leads)
    number = np.full(count, -1, np.int64)
    number[nodes] = np.arange(len(nodes))
    pairs = distinct(number[source[inside]] * len(nodes) + number[target[inside]])
    if len(pairs) > _MOST_EDGES:
        return found
    words = edges.source < 0
    is_loose = loose(edges)
    rooted, passing = holds.copy(), np.zeros(count, np.bool_)
    rooted[edges.target[words & ~is_loose]] = True
    passing[edges.target[words & is_loose]] = True
    walk = _Walk(len(nodes), pairs // len(nodes), pairs % len(nodes))
    kept = walk.keepers(*(flags[nodes].tolist() for flags in (has_object, lives, rooted, passing)))
    chosen = np.array(kept, np.int64)
    found[nodes] = np.where(chosen >= 0, nodes[chosen], -1)
    return found


def _that_lead_to(source: Indices, target: Indices, ends: Indices, count: int) -> npt.NDArray[np.bool_]:
    backwards = Graph(count, target, source, np.ones(len(source), np.bool_))
    backwards.spread(ends, ends, 1, strong_only=False)
    leads: Flags = backwards.mark != 0
    return leads


class _Walk:
    """Goes through a graph from what nothing points at down, ring by ring. Edges by ascending source."""

    def __init__(self, count: int, source: Indices, target: Indices) -> None:
        self._count = count
        bounds = np.searchsorted(source, np.arange(count + 1)).tolist()
        targets = target.tolist()
        self._next: list[list[int]] = [targets[bounds[n] : bounds[n + 1]] for n in range(count)]

    def keepers(
        self, has_object: list[bool], lives: list[bool], rooted: list[bool], passing: list[bool]
    ) -> list[int]:  # fmt: skip
        """Return the keeper of each node, -1: none. `rooted`, `passing`: words hold it that stay, or come and go."""
        kept, by = [-1] * self._count, [-1] * self._count
        for ring in reversed(list(self._rings())):
            above = min((by[node] for node in ring if by[node] >= 0), default=-1)
            is_rooted = any(rooted[node] or (above < 0 and passing[node]) for node in ring)
            own = [node for node in ring if has_object[node]]
            if own and above >= 0 and len(ring) == 1 and not is_rooted and not lives[ring[0]]:
                kept[ring[0]], own = above, []
            is_rooted = not own and (is_rooted or above < 0)  # what is an object's hangs on the object
            for node in ring:
                giver = node if has_object[node] and own else own[0] if own else above
                for other in self._next[node]:
                    rooted[other] |= is_rooted
                    by[other] = min(giver, by[other]) if giver >= 0 <= by[other] else max(giver, by[other])
        return kept

    def _rings(self) -> Iterator[list[int]]:
        """Yield the strongly connected components, each after those that it leads to (Tarjan, "Depth-first search and
        linear graph algorithms")."""
        index, low = [0] * self._count, [0] * self._count
        seen = 0
        stack: list[int] = []
        for root in range(self._count):
            path = [] if index[root] else [(root, iter(self._next[root]))]
            while path:
                node, others = path[-1]
                if not index[node]:
                    seen += 1
                    index[node] = low[node] = seen
                    stack.append(node)
                for other in others:
                    if not index[other]:
                        path.append((other, iter(self._next[other])))
                        break
                    low[node] = min(low[node], low[other])  # of what is done: no less than any index
                else:
                    path.pop()
                    if path:
                        low[path[-1][0]] = min(low[path[-1][0]], low[node])
                    if low[node] == index[node]:
                        yield self._cut(stack, node, low)

    def _cut(self, stack: list[int], last: int, low: list[int]) -> list[int]:
        """Take a component, whose nodes count no more from now on."""
        ring: list[int] = []
        while not ring or ring[-1] != last:
            ring.append(stack.pop())
            low[ring[-1]] = self._count + 1
        return ring
