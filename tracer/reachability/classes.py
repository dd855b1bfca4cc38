"""The class of each block: marked in passes by kind of root, so that each class says why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_any_of
from tracer.model.reachability import Reach, RootKind
from tracer.reachability.block_table import BlockTable
from tracer.reachability.edges import Edges
from tracer.reachability.graph import Graph
from tracer.reachability.memory import ROOT_KINDS, Addresses, RegionKind

_ENDING = (RegionKind.ENDING_STACK, RegionKind.ENDING_REGISTER)
_OF_BLOCK, _DESCRIBED, _HIDDEN = -2, -3, -4
"""Origins that are no words: a block that holds by itself, one that a spec calls a root, what may be hidden."""
_KINDS = ((_OF_BLOCK, RootKind.BLOCK), (_DESCRIBED, RootKind.DESCRIBED), (_HIDDEN, RootKind.HIDDEN))


@dataclass(frozen=True)
class Classes:
    """Of each block of a BlockTable, in its order.

    `root`: the address of the word that it was first reached by, 0: none. `owner`: of Reach.INDIRECT the start of the
    lost block that it hangs below, else 0.
    """

    reach: npt.NDArray[np.uint8]
    owner: Addresses
    root: Addresses
    root_kind: npt.NDArray[np.uint8]
    hidden: int = Reach.UNKNOWN
    """The class of what only hidden pointers may hold; UNKNOWN where there are none."""


@dataclass(frozen=True)
class DescribedMemory:
    """What specs say of blocks, of each of a BlockTable: `is_root`, and `hides`, where pointers may stand that nobody
    can see. `may_hide_more`: blocks that are not known may hide some."""

    is_root: npt.NDArray[np.bool_]
    hides: npt.NDArray[np.bool_]
    may_hide_more: bool = False


def classify(
    blocks: BlockTable, edges: Edges, holds: npt.NDArray[np.bool_], described: DescribedMemory | None = None
) -> Classes:
    """Mark: what is reached by pointers to starts, from all but the ending thread; from its stack and registers; by
    any pointer. What is left is lost, and folded.

    `holds`: of each block whether it holds what it points at by itself, as the loader's own do. What memory hides that
    is reached may hold all that is not.
    """
    graph = _graph(blocks, edges)
    is_root = edges.source < 0
    is_ending = is_root & is_any_of(edges.kind, _ENDING)
    usual, ending = is_root & ~is_ending, is_ending
    own = np.flatnonzero(holds)
    graph.spread(own, np.full(len(own), _OF_BLOCK), Reach.REACHABLE, strong_only=True)
    for chosen, mark in ((usual & edges.strong, Reach.REACHABLE), (ending & edges.strong, Reach.STACK)):
        words = np.flatnonzero(chosen)
        graph.spread(edges.target[words].astype(np.int64), words, mark, strong_only=True)
        if described is not None and mark == Reach.REACHABLE:
            roots = np.flatnonzero(described.is_root)
            graph.spread(roots, np.full(len(roots), _DESCRIBED), mark, strong_only=True)
    hidden = _spread_hidden(graph, described)
    words = np.flatnonzero(is_root & ~edges.strong)
    aside, origins = graph.weak_targets(np.flatnonzero(graph.mark))
    graph.spread(
        np.concatenate([edges.target[words], aside]), np.concatenate([words, origins]), Reach.POSSIBLE,
        strong_only=False,
    )
    return _with_leaders(blocks, edges, graph, hidden or _spread_hidden(graph, described))


def _graph(blocks: BlockTable, edges: Edges) -> Graph:
    of_block = edges.source >= 0
    source, target, strong = edges.source[of_block], edges.target[of_block], edges.strong[of_block]
    nested = np.flatnonzero(blocks.parents >= 0).astype(np.int32)
    if len(nested):  # who points at a block of a pool points at the pool
        source = np.concatenate([source, nested])
        target = np.concatenate([target, blocks.parents[nested].astype(np.int32)])
        strong = np.concatenate([strong, np.ones(len(nested), np.bool_)])
    return Graph(len(blocks), source, target, strong)


def _spread_hidden(graph: Graph, described: DescribedMemory | None) -> int:
    """Mark all that has no mark where memory that hides pointers has one; return that mark, UNKNOWN for none."""
    if described is None:
        return Reach.UNKNOWN
    marks = graph.mark[described.hides]
    mark = int(min(marks[marks != 0], default=Reach.REACHABLE if described.may_hide_more else Reach.UNKNOWN))
    if mark:
        left = np.flatnonzero(graph.mark == 0)
        graph.spread(left, np.full(len(left), _HIDDEN), mark, strong_only=True)
    return mark


def _with_leaders(blocks: BlockTable, edges: Edges, graph: Graph, hidden: int) -> Classes:
    leaders = graph.leaders(Reach.INDIRECT)
    graph.mark[leaders] = Reach.LOST
    reach = graph.mark
    owner, root = np.zeros(len(blocks), np.uint64), np.zeros(len(blocks), np.uint64)
    kind = np.zeros(len(blocks), np.uint8)
    below = np.flatnonzero(reach == Reach.INDIRECT)
    owner[below] = blocks.start[graph.origin[below]]
    held = np.flatnonzero((reach < Reach.LOST) & (graph.origin >= 0))
    words = graph.origin[held]
    root[held] = edges.at[words]
    kind[held] = _KIND_OF[edges.kind[words].astype(np.int64)]
    for origin, root_kind in _KINDS:
        kind[(reach < Reach.LOST) & (graph.origin == origin)] = root_kind
    return Classes(reach, owner, root, kind, hidden)


_KIND_OF = np.array([ROOT_KINDS.get(RegionKind(n), RootKind.NONE) if n else RootKind.NONE
                     for n in range(len(RegionKind) + 1)], np.uint8)  # fmt: skip
