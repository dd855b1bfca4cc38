"""The graph of blocks: who points at whom, and what can be reached from where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracer.reachability.block_table import Indices

_WIDE = 256
"""Nodes of a front from which on numpy is faster than a loop: a list of 200,000 blocks has as many fronts of one."""


class Graph:
    """Nodes 0 to `count` - 1; edges by ascending source. A node has a mark, 0: none; and whence it was reached."""

    def __init__(self, count: int, source: Indices, target: Indices, strong: npt.NDArray[np.bool_]) -> None:
        order = np.argsort(source, kind="stable")
        self._target: npt.NDArray[np.int32] = target[order].astype(np.int32)
        self._strong: npt.NDArray[np.uint8] = strong[order].astype(np.uint8)
        self._bounds: Indices = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(source, minlength=count), out=self._bounds[1:])
        self.mark: npt.NDArray[np.uint8] = np.zeros(count, np.uint8)
        self.origin: Indices = np.full(count, -1, np.int64)

    def spread(self, nodes: Indices, origins: Indices, mark: int, *, strong_only: bool) -> None:
        """Mark the nodes that have none, and what they reach without passing marked ones, each with the origin that
        it was reached from first."""
        front = self._enter(nodes, origins, mark) if len(nodes) else nodes
        while len(front):
            if len(front) < _WIDE:
                front = self._walk(front.tolist(), mark, strong_only)
                continue
            edges, sources = self._edges_of(front)
            if strong_only:
                chosen = self._strong[edges] != 0
                edges, sources = edges[chosen], sources[chosen]
            front = self._enter(self._target[edges].astype(np.int64), self.origin[sources], mark)

    def _enter(self, nodes: Indices, origins: Indices, mark: int) -> Indices:
        new = np.flatnonzero(self.mark[nodes] == 0)
        distinct, first = np.unique(nodes[new], return_index=True)
        self.mark[distinct] = mark
        self.origin[distinct] = origins[new[first]]
        return distinct

    def _edges_of(self, nodes: Indices) -> tuple[Indices, Indices]:
        """Return the edges that leave these nodes, and the node of each."""
        starts = self._bounds[nodes]
        lengths = self._bounds[nodes + 1] - starts
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return np.arange(int(lengths.sum())) + shift, np.repeat(nodes, lengths)

    def _walk(self, open_: list[int], mark: int, strong_only: bool) -> Indices:
        """Go on from these nodes in a loop, until nothing is left or the front has become wide; return the front."""
        marks, origins = self.mark.data, self.origin.data
        target, strong, bounds = self._target.data, self._strong.data, self._bounds.data
        while open_ and len(open_) < 4 * _WIDE:
            node = open_.pop()
            for edge in range(bounds[node], bounds[node + 1]):
                other = target[edge]
                if not marks[other] and (strong[edge] or not strong_only):
                    marks[other] = mark
                    origins[other] = origins[node]
                    open_.append(other)
        return np.array(open_, np.int64)

    def weak_targets(self, sources: Indices) -> tuple[Indices, Indices]:
        """Return what these nodes point at from the side only, and the origin of each pointer's node."""
        edges, of = self._edges_of(sources)
        weak = self._strong[edges] == 0
        return self._target[edges[weak]].astype(np.int64), self.origin[of[weak]]

    def leaders(self, mark: int) -> Indices:
        """Fold the unmarked nodes: return those of which each stands for what only it reaches, and mark the others,
        with their leader as origin.

        A leader is a node that no other unmarked one points at; or the first of a cycle, where nothing outside of the
        cycle points into it. (In a depth-first forest the last tree's root is in a component that nothing points into;
        so is, backwards, each earlier one that no later root reaches.)
        """
        unmarked = np.flatnonzero(self.mark == 0)
        _, pointed_at = self._pointed_at(unmarked)
        first = unmarked[~pointed_at]
        self.spread(first, first, mark, strong_only=False)
        left = np.flatnonzero(self.mark == 0)
        roots = self._roots(left.tolist(), mark)
        self.mark[left] = 0
        second = self._roots(roots[::-1], mark)
        return np.sort(np.concatenate([first, np.array(second, np.int64)]))

    def _pointed_at(self, nodes: Indices) -> tuple[Indices, npt.NDArray[np.bool_]]:
        edges, of = self._edges_of(nodes)
        targets = self._target[edges].astype(np.int64)
        others = targets[targets != of]
        flags = np.zeros(len(self.mark), np.bool_)
        flags[others] = True
        return others, flags[nodes]

    def _roots(self, nodes: Sequence[int], mark: int) -> list[int]:
        """Return which of these nodes no earlier one of them reaches; marks all that they reach."""
        marks, origins = self.mark.data, self.origin.data
        roots = []
        for node in nodes:
            if marks[node]:
                continue
            roots.append(node)
            marks[node] = mark
            origins[node] = node
            front = self._walk([node], mark, False)
            while len(front):
                edges, sources = self._edges_of(front)
                front = self._enter(self._target[edges].astype(np.int64), self.origin[sources], mark)
        return roots
