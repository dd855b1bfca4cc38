"""Retainers of what grows: dominators on the graph of entries, each of which others or a root hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracer.model.findings import FrameList, Growing, Holder, Leak, Retainer
from tracer.model.trends import GROWING

_MOST_ENTRIES, _MOST_SHOWN = 2000, 3
_PASSING = ("stack", "register")
"""Words of threads come and go: they count only where nothing else holds."""
_NO_HOLDER = ("freed-block",)
_ROOTS = ("global", "thread-local", "mapping")
_Node = tuple[object, ...]


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

    An entry is dominated by what dominates all its holders (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
    Algorithm", in its form with sets); those of its own do not count.
    """
    graph = _Graph(leaks)
    known = {id_: size for id_, size in grown.items() if graph.holders.get((id_,))}
    if not known or len(graph.holders) > _MOST_ENTRIES:
        return None
    above = _dominators(graph.holders)
    sums: dict[_Node, int] = {}
    for id_, size in known.items():
        for node in above[id_,] - {(id_,)}:
            sums[node] = sums.get(node, 0) + size
    ranked = sorted(sums, key=lambda node: (-sums[node], graph.described[node].kind not in _ROOTS, repr(node)))
    found = tuple(Retainer(graph.described[node], sums[node]) for node in ranked[:_MOST_SHOWN])
    return Growing(sum(grown.values()), found)


def _as_holder(leak: Leak) -> Holder:
    own = leak.own_frame
    makers = len(leak.stack) - len(leak.callers)
    return Holder(leak.count, "block", stack=leak.callers or None, own_frame=None if own is None else own - makers)


class _Graph:
    """`holders`: of each entry, (id,), the nodes that hold it: entries, or what its holders are called."""

    def __init__(self, leaks: Iterable[Leak]) -> None:
        self.holders: dict[_Node, set[_Node]] = {}
        self.described: dict[_Node, Holder] = {}
        entries = [leak for leak in leaks if leak.holders is not None]
        by_birth = {_lines(leak.callers): leak for leak in entries}
        for leak in entries:
            node, found = (leak.id,), list(self._holders(leak, by_birth))
            self.described.setdefault(node, _as_holder(leak))
            self.holders.setdefault(node, set()).update(found)

    def _holders(self, leak: Leak, by_birth: Mapping[_Node, Leak]) -> Iterator[_Node]:
        holders = [holder for holder in leak.holders or () if holder.kind not in _NO_HOLDER]
        lasting = [holder for holder in holders if holder.kind not in _PASSING]
        for holder in lasting or holders:
            above = by_birth.get(_lines(holder.stack or ())) if holder.kind == "block" else None
            if above is not None and above.id == leak.id:
                continue
            node: _Node = (above.id,) if above is not None else (
                holder.kind, holder.name, holder.module, holder.offset, holder.thread, _lines(holder.stack or ()),
            )  # fmt: skip
            if above is None or holder.name is not None:
                self.described[node] = holder
            yield node


def _lines(stack: FrameList) -> _Node:
    return tuple((frame.module, frame.function, frame.line) for frame in stack)


def _dominators(holders: Mapping[_Node, set[_Node]]) -> dict[_Node, frozenset[_Node]]:
    """Return all nodes through which every way from a root to a node leads, the node itself among them."""
    everything = frozenset(holders).union(*holders.values())
    found = {node: everything if holders.get(node) else frozenset({node}) for node in everything}
    changed = True
    while changed:
        changed = False
        for node, above in holders.items():
            if not above:
                continue
            now = frozenset.intersection(*(found[one] for one in above)) | {node}
            if now != found[node]:
                found[node], changed = now, True
    return found
