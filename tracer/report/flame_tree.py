"""Call paths merged from the outermost function on: what a flame graph draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from tracer.late_dataclasses import dataclass
from tracer.report.weights import NOTHING, CallPath, Weight


@dataclass
class FlameNode:
    name: str
    weight: Weight = NOTHING
    children: dict[str, FlameNode] = field(default_factory=dict)

    def add(self, path: CallPath) -> None:
        node = self
        node.weight += path.weight
        for name in path.names:
            node = node.children.setdefault(name, FlameNode(name))
            node.weight += path.weight

    @property
    def depth(self) -> int:
        """Levels below this one."""
        levels, below = -1, [self]
        while below:
            levels += 1
            below = [child for node in below for child in node.children.values()]
        return levels


def flame_tree(name: str, paths: Iterable[CallPath]) -> FlameNode:
    root = FlameNode(name)
    for path in paths:
        root.add(path)
    return root
