"""Signatures: which objects are out of balance in the same way.

A balance tree per object (the idea is Mozilla's, of its refcount balance tools): each node is a call path from the
outermost frame in, with its references made minus put. Below a node that nets to zero nothing tells the object
apart, so how often a balanced piece of code ran does not matter; what is left is the signature.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, Indices, group_rows, sorted_runs
from tracer.analysis.hashing import mixed, sums
from tracer.analysis.history import Calls
from tracer.analysis.stacks import SymbolizedStacks
from tracer.late_dataclasses import dataclass
from tracer.model.hashing import Hashes
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

NODES_AT_ONCE = 1 << 20
"""Of balance trees; 8 arrays as long as that, 64 MB, are alive at a time."""
Indices32 = npt.NDArray[np.int32]


def signatures(objects: Records, calls: Calls, table: SymbolizedStacks) -> Indices:
    """Return a label per object, shape (len(objects),): equal for equal balance trees. Labels mean nothing else.

    Sets of rows are compared by a sum of 64-bit hashes, so that a million objects take no loop.
    """
    rows = np.arange(len(objects))
    owner = np.concatenate([rows, calls.object])
    stack = np.concatenate([objects["stack"], calls.stack])
    net = np.where(calls.operation == Operation.PUT, -calls.count, calls.count)
    net = np.concatenate([objects["initial"].astype(np.int64), net])
    distinct = group_rows(sums(mixed(stack, net.view(np.uint64)), owner, len(objects)))
    representative = np.full(len(objects), -1, dtype=np.int64)
    representative[distinct.first] = np.arange(len(distinct))
    kept = representative[owner] >= 0
    trees = _trees(representative[owner[kept]], stack[kept], net[kept], len(distinct), table)
    return group_rows(trees).label[distinct.label]


@dataclass
class _Paths:
    """Nodes of all call paths: a path is its parent path and one more frame."""

    nodes: dict[tuple[int, str], int] = field(default_factory=dict)

    def of(self, keys: tuple[str, ...]) -> list[int]:
        """Return the nodes from the outermost frame to the leaf. `keys`: leaf first; a lost stack is one unknown."""
        node, path = 0, []
        for key in reversed(keys or ("",)):
            node = self.nodes.setdefault((node, key), len(self.nodes) + 1)
            path.append(node)
        return path


@dataclass(frozen=True)
class _Rows:
    """Calls to be summed: the tree and the distinct stack of each, and its references made minus put."""

    tree: Indices
    stack: Indices
    net: Indices


def _trees(owner: Indices, stack: Column, net: Indices, trees: int, table: SymbolizedStacks) -> Hashes:
    """Return the hash of each tree's unbalanced nodes, shape (trees,). Rows: one per owner and stack.

    Whole trees are summed some at a time: each row has as many nodes as its stack has frames.
    """
    paths = _Paths()
    stacks, which = np.unique(stack, return_inverse=True)
    by_stack = [np.array(paths.of(table.get(int(id_)).keys), dtype=np.int32) for id_ in stacks]
    lengths = np.array([len(path) for path in by_stack], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    flat = np.concatenate([np.zeros(0, dtype=np.int32), *by_stack])
    order, bounds = sorted_runs(owner, trees)
    nodes = np.concatenate([[0], np.cumsum(lengths[which[order]])])[bounds]
    hashes = np.zeros(trees, dtype=np.uint64)
    first = 0
    while first < trees:
        last = max(first + 1, int(np.searchsorted(nodes, nodes[first] + NODES_AT_ONCE, side="right")) - 1)
        rows = order[bounds[first] : bounds[last]]
        chosen = _Rows(owner[rows] - first, which[rows], net[rows])
        hashes[first:last] = _hashes(chosen, flat, offsets, lengths, last - first)
        first = last
    return hashes


def _hashes(rows: _Rows, flat: Indices32, offsets: Indices, lengths: Indices, trees: int) -> Hashes:
    """Return the hash of each tree. `flat`: the nodes of all stacks' paths, each at its offset."""
    depth = lengths[rows.stack]
    starts = np.concatenate([[0], np.cumsum(depth)[:-1]])
    step = np.arange(int(depth.sum())) - np.repeat(starts, depth)
    node = flat[np.repeat(offsets[rows.stack], depth) + step]
    tree = np.repeat(rows.tree, depth)
    groups = group_rows(tree, node)
    balance = _totals(np.repeat(rows.net, depth), groups.label, len(groups))

    index = np.arange(len(node))
    last_zero = np.maximum.accumulate(np.where(balance[groups.label] == 0, index, -1))
    seen = groups.first[last_zero[groups.first] < np.repeat(starts, depth)[groups.first]]
    hashes = mixed(node[seen], balance[groups.label[seen]].view(np.uint64))
    return sums(hashes, tree[seen], trees)


def _totals(values: Indices, label: Indices, groups: int) -> Indices:
    if len(label) == 0:
        return np.zeros(groups, dtype=np.int64)
    order, bounds = sorted_runs(label, groups)
    return np.add.reduceat(values[order], bounds[:-1])
