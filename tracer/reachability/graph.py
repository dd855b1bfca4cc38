"""The graph of blocks: who points at whom, and what can be reached from where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tracer.reachability.block_table import Indices

Numbers = Indices | npt.NDArray[np.int32]
_WIDE = 256
"""Edges of a front from which on numpy is faster than a loop: a list of 200,000 blocks has as many fronts of one."""
_AT_ONCE = 1 << 18
"""Edges that are followed together, for there may be millions."""


class Graph:
    """Nodes 0 to `count` - 1; edges by ascending source. A node has a mark, 0: none; and whence it was reached."""

    def __init__(self, count: int, source: Numbers, target: Numbers, strong: npt.NDArray[np.bool_]) -> None:
        if np.any(source[1:] < source[:-1]):
            order = np.argsort(source, kind="stable")
            target, strong = target[order], strong[order]
        self._target: npt.NDArray[np.int32] = target.astype(np.int32, copy=False)
        self._strong: npt.NDArray[np.uint8] = strong.astype(np.uint8)
        self._bounds: Indices = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(source, minlength=count), out=self._bounds[1:])
        self.mark: npt.NDArray[np.uint8] = np.zeros(count, np.uint8)
        self.origin: Indices = np.full(count, -1, np.int64)
        self._first: npt.NDArray[np.int32] = np.empty(count, np.int32)
        """Of nodes that are entered: which of them it was first."""

    def spread(self, nodes: Indices, origins: Indices, mark: int, *, strong_only: bool) -> None:
        """Mark the nodes that have none, and what they reach without passing marked ones, each with the origin that
        it was reached from first."""
        if len(nodes):
            self._go_on(self._enter(nodes, origins, mark), mark, strong_only)

    def _go_on(self, front: Indices, mark: int, strong_only: bool) -> None:
        """Mark what these nodes reach."""
        while len(front):
            if self._is_narrow(front):
                front = self._walk(front.tolist(), mark, strong_only)
            else:
                front = self._step(front, mark, strong_only)

    def _is_narrow(self, front: Indices) -> bool:
        return len(front) < _WIDE and int((self._bounds[front + 1] - self._bounds[front]).sum()) < 4 * _WIDE

    def _step(self, front: Indices, mark: int, strong_only: bool) -> Indices:
        """Go on from these nodes by one edge each way; return the nodes that were reached."""
        reached = []
        for edges, sources in self._edges_of(front):
            if strong_only:
                chosen = self._strong[edges] != 0
                edges, sources = edges[chosen], sources[chosen]
            reached.append(self._enter(self._target[edges].astype(np.int64), self.origin[sources], mark))
        return reached[0] if len(reached) == 1 else np.sort(np.concatenate(reached))

    def _enter(self, nodes: Indices, origins: Indices, mark: int) -> Indices:
        """Mark those of these nodes that have none, each with the first of its origins; return them, ascending."""
        new = np.flatnonzero(self.mark[nodes] == 0)
        nodes, places = nodes[new], np.arange(len(new), dtype=np.int32)
        self._first[nodes[::-1]] = places[::-1]  # of several that are written to one place the last stays
        first = np.flatnonzero(self._first[nodes] == places)
        distinct = nodes[first]
        self.mark[distinct] = mark
        self.origin[distinct] = origins[new[first]]
        return np.sort(distinct)

    def _edges_of(self, nodes: Indices) -> Iterator[tuple[Indices, Indices]]:
        """Yield edges that leave these nodes, and the node of each; some at a time."""
        ends = np.cumsum(self._bounds[nodes + 1] - self._bounds[nodes])
        begin = 0
        while begin < len(nodes):
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + _AT_ONCE, side="right")), begin + 1)
            yield self._edges_of_few(nodes[begin:end])
            begin = end

    def _edges_of_few(self, nodes: Indices) -> tuple[Indices, Indices]:
        starts = self._bounds[nodes]
        lengths = self._bounds[nodes + 1] - starts
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return np.arange(int(lengths.sum())) + shift, np.repeat(nodes, lengths)

    def _walk(self, open_: list[int], mark: int, strong_only: bool) -> Indices:
        """Go on from these nodes in a loop, until nothing is left, the front has become wide or a node has many edges;
        return the front."""
        marks, origins = self.mark.data, self.origin.data
        target, strong, bounds = self._target.data, self._strong.data, self._bounds.data
        while open_ and len(open_) < 4 * _WIDE:
            node = open_.pop()
            if bounds[node + 1] - bounds[node] > 4 * _WIDE:
                open_.append(node)
                break
            for edge in range(bounds[node], bounds[node + 1]):
                other = target[edge]
                if not marks[other] and (strong[edge] or not strong_only):
                    marks[other] = mark
                    origins[other] = origins[node]
                    open_.append(other)
        return np.array(open_, np.int64)

    def weak_targets(self, sources: Indices) -> tuple[Indices, Indices]:
        """Return what these nodes point at from the side only, and the origin of each pointer's node."""
        targets, origins = [_NO_NODES], [_NO_NODES]
        for edges, of in self._edges_of(sources):
            weak = self._strong[edges] == 0
            targets.append(self._target[edges[weak]].astype(np.int64))
            origins.append(self.origin[of[weak]])
        return np.concatenate(targets), np.concatenate(origins)

    def leaders(self, mark: int) -> Indices:
        """Fold the unmarked nodes: return those of which each stands for what only it reaches, and mark the others,
        with their leader as origin.

        A leader is a node that no other unmarked one points at; or the first of a cycle, where nothing outside of the
        cycle points into it. (In a depth-first forest the last tree's root is in a component that nothing points into;
        so is, backwards, each earlier one that no later root reaches.)
        """
        unmarked = np.flatnonzero(self.mark == 0)
        first = unmarked[~self._pointed_at(unmarked)]
        self.spread(first, first, mark, strong_only=False)
        left = np.flatnonzero(self.mark == 0)
        roots = self._roots(left.tolist(), mark)
        self.mark[left] = 0
        second = self._roots(roots[::-1], mark)
        return np.sort(np.concatenate([first, np.array(second, np.int64)]))

    def _pointed_at(self, nodes: Indices) -> npt.NDArray[np.bool_]:
        """Return which of these nodes another one of them points at."""
        flags = np.zeros(len(self.mark), np.bool_)
        for edges, of in self._edges_of(nodes):
            targets = self._target[edges]
            flags[targets[targets != of]] = True
        return flags[nodes]

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
            self._go_on(self._walk([node], mark, False), mark, False)
        return roots


_NO_NODES = np.zeros(0, np.int64)
