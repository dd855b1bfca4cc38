"""Balance trees: references taken and given back, summed by call path from the outermost caller in.

The idea is Mozilla's, of its refcount balance tools: what nets to zero below a call is no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from tracer.late_dataclasses import dataclass
from tracer.model.frames import Frame

CallPath = tuple[tuple[str, Frame], ...]
"""The calls of a stack, outermost first, each with what identifies its function."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Balanced subtrees that were taken out of a tree."""

    paths: int = 0
    """Nodes at which they hung."""
    gets: int = 0
    puts: int = 0


@dataclass(frozen=True, slots=True)
class BalanceNode:
    """A call, with the references that were taken (creates too) and given back below it; callers outermost."""

    frame: Frame | None
    """None at the root. Without a line where calls from several lines are summed."""
    gets: int
    puts: int
    children: tuple[BalanceNode, ...] = ()
    """Most out of balance first."""
    own_gets: int = 0
    """Those of which this is the innermost call; part of `gets`."""
    own_puts: int = 0
    folded: Fold = Fold()

    @property
    def net(self) -> int:
        return self.gets - self.puts

    def pruned(self) -> BalanceNode:
        """Return the tree without the subtrees that net to zero; they are counted in `folded`."""
        kept = tuple(child.pruned() for child in self.children if child.net)
        gone = [child for child in self.children if not child.net]
        fold = Fold(
            self.folded.paths + len(gone),
            self.folded.gets + sum(child.gets for child in gone),
            self.folded.puts + sum(child.puts for child in gone),
        )
        return replace(self, children=kept, folded=fold)

    def self_check(self) -> bool:
        """Tell whether at every node the children, the folded and its own calls sum up to the node."""
        gets = self.own_gets + self.folded.gets + sum(child.gets for child in self.children)
        puts = self.own_puts + self.folded.puts + sum(child.puts for child in self.children)
        return (gets, puts) == (self.gets, self.puts) and all(child.self_check() for child in self.children)


@dataclass(frozen=True, slots=True)
class Balance:
    """What a balance tree is made of. A tree is made when it is asked for: there may be tens of thousands, and a report
    prints few."""

    references: tuple[tuple[int, int, int], ...]
    """Stack id, references taken, references given back."""
    paths: Mapping[int, CallPath] = field(compare=False, repr=False)
    """By stack id; those of others may be among them."""

    def tree(self) -> BalanceNode:
        """Return the whole tree of what was taken and given back."""
        return balance_tree(self.paths, self.references)


def balance_tree(paths: Mapping[int, CallPath], references: Iterable[tuple[int, int, int]]) -> BalanceNode:
    """Return the whole tree. `references`: (stack id, taken, given back).

    Calls from several lines of one function are one node.
    """
    root = _Node(None)
    for stack, gets, puts in references:
        root.add(paths[stack], gets, puts)
    return root.frozen()


@dataclass
class _Node:
    frame: Frame | None
    gets: int = 0
    puts: int = 0
    own_gets: int = 0
    own_puts: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, path: CallPath, gets: int, puts: int) -> None:
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
