"""Balance trees: references taken and given back, summed by call path from the outermost caller in.

The idea is Mozilla's, of its refcount balance tools: what nets to zero below a call is no news.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tracer.analysis.runtime import is_machinery
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.findings import BalanceNode
from tracer.model.frames import Frame

_LOST = ("", Frame(None, why_unknown="stack not kept"))


def balance_tree(table: SymbolizedStacks, references: Iterable[tuple[int, int, int]]) -> BalanceNode:
    """Return the whole tree. `references`: (stack id, taken, given back).

    Calls of stubs and runtimes are left out, and calls from several lines of one function are one node.
    """
    root = _Node(None)
    for stack, gets, puts in references:
        root.add(_path(table, stack), gets, puts)
    return root.frozen()


@dataclass
class _Node:
    frame: Frame | None
    gets: int = 0
    puts: int = 0
    own_gets: int = 0
    own_puts: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, path: list[tuple[str, Frame]], gets: int, puts: int) -> None:
        node = self
        node.gets, node.puts = node.gets + gets, node.puts + puts
        for key, frame in path:
            node = node.children.setdefault(key, _Node(frame))
            node.gets, node.puts = node.gets + gets, node.puts + puts
            if node.frame is not None and (node.frame.file, node.frame.line) != (frame.file, frame.line):
                node.frame = replace(node.frame, line=None)
        node.own_gets, node.own_puts = node.own_gets + gets, node.own_puts + puts

    def frozen(self) -> BalanceNode:
        ranked = sorted(self.children.items(), key=lambda item: (-abs(item[1].gets - item[1].puts), item[0]))
        children = tuple(node.frozen() for _, node in ranked)
        return BalanceNode(self.frame, self.gets, self.puts, children, self.own_gets, self.own_puts)


def _path(table: SymbolizedStacks, stack: int) -> list[tuple[str, Frame]]:
    """Return the calls of a stack, outermost first."""
    symbolized = table.get(stack)
    keyed = list(zip(symbolized.keys, symbolized.frames, strict=True))
    return [pair for pair in keyed if not is_machinery(pair[1])][::-1] or keyed[::-1] or [_LOST]
