"""Dominator trees of what is still held: what retains how much, from the roots down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

from tracer.analysis.holder_graph import MOST_ENTRIES, HolderGraph, Node, dominators
from tracer.model.addresses import Space
from tracer.model.findings import INDIRECT, LOST, DominatorNode, DominatorTree, Leak

_GONE = (LOST, INDIRECT)
_DEEPEST = 60
"""What would stand deeper stands there: a page is read by people, and by programs with a limit."""


class DominatorTrees(Sequence[DominatorTree]):
    """The trees of some entries, made when the first is asked for: few reports show any."""

    def __init__(self, leaks: Iterable[Leak]) -> None:
        self._leaks = tuple(leaks)

    @cached_property
    def _trees(self) -> tuple[DominatorTree, ...]:
        return dominator_trees(self._leaks)

    def __len__(self) -> int:
        return len(self._trees)

    @overload
    def __getitem__(self, index: int) -> DominatorTree: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DominatorTree]: ...
    def __getitem__(self, index: int | slice) -> DominatorTree | Sequence[DominatorTree]:
        return self._trees[index]

    def __eq__(self, other: object) -> bool:
        return self._trees == (other._trees if isinstance(other, DominatorTrees) else other)

    def __hash__(self) -> int:
        return hash(self._trees)


def dominator_trees(leaks: Iterable[Leak]) -> tuple[DominatorTree, ...]:
    """Return the tree of each process that was looked into, unless it has thousands of entries; without what is lost,
    and without what holds no bytes."""
    of: dict[Space, list[Leak]] = {}
    for leak in leaks:
        if leak.holders is not None and leak.reachability not in _GONE:
            of.setdefault(leak.space, []).append(leak)
    trees = (_tree(pid, mine) for (pid, _), mine in of.items() if len(mine) <= MOST_ENTRIES)
    return tuple(sorted(filter(lambda tree: tree.nodes, trees), key=lambda tree: -_retained(tree.nodes)))


def _tree(pid: int, leaks: Sequence[Leak]) -> DominatorTree:
    graph = HolderGraph(leaks)
    own: dict[Node, tuple[int, int]] = {}
    for leak in leaks:
        count, size = own.get((leak.id,), (0, 0))
        own[leak.id,] = count + leak.count, size + (leak.bytes or 0)
    below: dict[Node | None, list[Node]] = {}
    above = dominators(graph.holders)
    for node, parent in _parents(above).items():
        below.setdefault(parent, []).append(node)
    return DominatorTree(pid, _nodes(None, below, graph, own))


def _parents(above: Mapping[Node, frozenset[Node]]) -> dict[Node, Node | None]:
    """Return the last dominator of each node, or one above it where that is deep; those of roots, None, come first."""
    parents: dict[Node, Node | None] = {}
    for node in sorted(above, key=lambda one: (len(above[one]), repr(one))):
        others = sorted(above[node] - {node}, key=lambda one: len(above[one]))
        parents[node] = others[min(len(others), _DEEPEST) - 1] if others else None
    return parents


def _nodes(
    parent: Node | None, below: Mapping[Node | None, Sequence[Node]], graph: HolderGraph,
    own: Mapping[Node, tuple[int, int]],
) -> tuple[DominatorNode, ...]:
    found = []
    for node in below.get(parent, ()):
        (count, size), inner = own.get(node, (0, 0)), _nodes(node, below, graph, own)
        if retained := size + _retained(inner):
            holder, id_ = graph.described[node], None
            if node in own:  # as a whole, not the member by which it holds
                holder, id_ = replace(holder, name=None, member=None, offset=None), str(node[0])
            found.append(DominatorNode(holder, id_, count, size, retained, inner))
    return tuple(sorted(found, key=lambda one: -one.retained))


def _retained(nodes: Iterable[DominatorNode]) -> int:
    return sum(node.retained for node in nodes)
