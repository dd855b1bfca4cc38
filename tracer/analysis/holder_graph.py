"""Graph of entries and of what holds them, and its dominators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracer.model.findings import FrameList, Holder, Leak
from tracer.model.late_holders import whole

_PASSING = ("stack", "register")
"""Words of threads come and go: they count only where nothing else holds."""
_NO_HOLDER = ("freed-block",)
MOST_ENTRIES = 2000
"""Of more the dominators would take seconds."""
Node = tuple[object, ...]
"""An entry, (id,), or what holds entries and is none."""


def _as_holder(leak: Leak) -> Holder:
    own = leak.own_frame
    makers = len(leak.stack) - len(leak.callers)
    return Holder(leak.count, "block", stack=leak.callers or None, own_frame=None if own is None else own - makers)


def _different(leaks: Iterable[Leak]) -> list[Leak]:
    """Return the first of those that are the same entry, made and held alike, in many processes."""
    found: dict[tuple[object, ...], Leak] = {}
    for leak in leaks:
        found.setdefault((leak.id, leak.maker is None, id(leak.stack), id(whole(leak.holders))), leak)
    return list(found.values())


class HolderGraph:
    """`holders`: of each entry, (id,), the nodes that hold it: entries, or what its holders are called."""

    def __init__(self, leaks: Iterable[Leak]) -> None:
        self.holders: dict[Node, set[Node]] = {}
        self.described: dict[Node, Holder] = {}
        entries = _different(leak for leak in leaks if leak.holders is not None)
        self._lines: dict[int, tuple[FrameList, Node]] = {}
        self._by_birth: dict[Node, dict[str, Leak]] = {}
        """By the lines of a stack, and by these with the innermost address: the first entry of each id."""
        for leak in entries:
            if stack := leak.callers:
                lines = self._lines_of(stack)
                for birth in (lines, (lines, stack[0].address)):
                    self._by_birth.setdefault(birth, {}).setdefault(leak.id, leak)
        for leak in entries:
            node, found = (leak.id,), list(self._holders(leak))
            self.described.setdefault(node, _as_holder(leak))
            self.holders.setdefault(node, set()).update(found)

    def _entry(self, holder: Holder) -> Leak | None:
        """Return the entry that a holder's blocks are in, where there is just one: several calls may stand in one line,
        which the innermost address tells apart."""
        stack = holder.stack
        if holder.kind != "block" or not stack:
            return None
        lines = self._lines_of(stack)
        found = self._by_birth.get(lines, {})
        if len(found) > 1:
            found = self._by_birth.get((lines, stack[0].address), {})
        return next(iter(found.values())) if len(found) == 1 else None

    def _lines_of(self, stack: FrameList) -> Node:
        """Return what stacks have in common that read the same; worked out once for each, which many entries share."""
        known = self._lines.get(id(stack))
        if known is None:
            known = self._lines[id(stack)] = stack, _lines(stack)
        return known[1]

    def _holders(self, leak: Leak) -> Iterator[Node]:
        holders = [holder for holder in leak.holders or () if holder.kind not in _NO_HOLDER]
        lasting = [holder for holder in holders if holder.kind not in _PASSING]
        for holder in lasting or holders:
            above = self._entry(holder)
            if above is not None and above.id == leak.id:
                continue
            node = (above.id,) if above is not None else holder_node(holder, self._lines_of(holder.stack or ()))
            if above is None or holder.name is not None:
                self.described[node] = holder
            yield node


def holder_node(holder: Holder, lines: Node | None = None) -> Node:
    """Return the node of what holds entries and is none. `lines`: of its stack, where they are known."""
    lines = _lines(holder.stack or ()) if lines is None else lines
    return holder.kind, holder.name, holder.module, holder.offset, holder.thread, lines


def _lines(stack: FrameList) -> Node:
    return tuple((frame.module, frame.function, frame.line) for frame in stack)


def dominators(holders: Mapping[Node, set[Node]]) -> dict[Node, frozenset[Node]]:
    """Return all nodes through which every way from a root to a node leads, the node itself among them; nothing of what
    no root leads to, as a cycle that is lost. A root is what nothing holds.

    Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", in its form with sets.
    """
    nodes = set(holders).union(*holders.values())
    found = {node: frozenset({node}) for node in nodes if not holders.get(node)}
    changed = True
    while changed:
        changed = False
        for node, above in holders.items():
            known = [found[one] for one in above if one in found]
            if known and (now := frozenset.intersection(*known) | {node}) != found.get(node):
                found[node], changed = now, True
    return found
