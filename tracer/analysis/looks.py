"""Looks at the memory of a trace that goes on: what holds it, and what that grew by since the look before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tracer.analysis.dominator_tree import dominator_trees
from tracer.analysis.holder_graph import Node, holder_node
from tracer.analysis.retained import bytes_of, growing, lost_bytes_of, more, retainers
from tracer.model.findings import INDIRECT, LOST, DominatorNode, Findings, Holder, Leak
from tracer.model.reachability import Scan
from tracer.model.top import HeldNode, HeldTree, Look

_ENDED = "leaked", "alive-at-exec", "inherited"
_Retained = Mapping[tuple[int, Node], int]
"""Bytes by process and node of its tree."""


def scans_of_living(findings: Findings) -> tuple[Scan, ...]:
    """Return what was looked into just now, without what was at the ends of processes."""
    living = {process.space for process in findings.processes if process.ended_ns is None}
    return tuple(scan for scan in findings.scans if (scan.pid, scan.generation) in living)


def look_of(findings: Findings, scans: tuple[Scan, ...], before: Look | None) -> Look:
    """Sum up a look of some `scans`, and compare it with the look `before`, process by process."""
    looked = {scan.pid for scan in scans if scan.reason is None}
    leaks = [leak for leak in findings.leaks if leak.pid in looked and leak.state not in _ENDED]
    of = {pid: [leak for leak in leaks if leak.pid == pid] for pid in sorted(looked)}
    sizes = {pid: bytes_of(mine) for pid, mine in of.items()}
    lost_sizes = {pid: lost_bytes_of(mine) for pid, mine in of.items()}
    if before is None:
        grown, lost = growing(leaks)
    else:
        grown, lost = _more(sizes, before.sizes), _more(lost_sizes, before.lost_sizes)
    known: Collection[int] = () if before is None else before.lost
    retained = {} if before is None else _retained(before)
    return Look(
        time_ns=findings.duration_ns,
        scans=scans,
        trees=tuple(
            HeldTree(tree.pid, _nodes(tree.nodes, tree.pid, retained if tree.pid in known else None))
            for tree in dominator_trees(leaks)
        ),
        growing=retainers(leaks, grown, lost),
        before_ns=None if before is None else before.time_ns,
        sizes=sizes,
        lost_sizes=lost_sizes,
        lost={pid: _lost(mine) for pid, mine in of.items()},
        lost_before=None if before is None else before.lost,
    )


def _more(now: Mapping[int, Mapping[str, int]], before: Mapping[int, Mapping[str, int]]) -> dict[str, int]:
    """Return what entries grew by, by id, in the processes that both looks saw."""
    found: Counter[str] = Counter()
    for pid in now.keys() & before.keys():
        found.update(more(now[pid], before[pid]))
    return dict(found)


def _lost(leaks: Sequence[Leak]) -> tuple[int, int]:
    """Return the blocks and bytes that are lost; counted objects are in blocks."""
    found = [leak for leak in leaks if leak.kind != "reference" and leak.reachability in (LOST, INDIRECT)]
    return sum(leak.count for leak in found), sum(leak.bytes or 0 for leak in found)


def _nodes(nodes: Sequence[DominatorNode], pid: int, before: _Retained | None) -> tuple[HeldNode, ...]:
    return tuple(
        HeldNode(
            node.holder, node.id, node.count, node.bytes, node.retained,
            None if before is None else node.retained - before.get((pid, _key(node.holder, node.id)), 0),
            _nodes(node.below, pid, before),
        )
        for node in nodes
    )  # fmt: skip


def _retained(look: Look) -> dict[tuple[int, Node], int]:
    found: dict[tuple[int, Node], int] = {}
    waiting = [(tree.pid, node) for tree in look.trees for node in tree.nodes]
    while waiting:
        pid, node = waiting.pop()
        found[pid, _key(node.holder, node.id)] = node.retained
        waiting += [(pid, below) for below in node.below]
    return found


def _key(holder: Holder, id_: str | None) -> Node:
    return (id_,) if id_ is not None else holder_node(holder)
