"""Reachability by sets and definitions: slow, and plainly right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracer.model.reachability import Reach


@dataclass(frozen=True)
class Pointer:
    """`source`: a block, or -1 for a root; `ending`: of the thread that ends the process."""

    source: int
    target: int
    strong: bool = True
    ending: bool = False


def closure(begin: Iterable[int], pointers: list[Pointer], *, strong_only: bool) -> set[int]:
    reached = set(begin)
    while True:
        more = {
            p.target for p in pointers
            if p.source in reached and p.target not in reached and (p.strong or not strong_only)
        }
        if not more:
            return reached
        reached |= more


def naive_classes(
    count: int, pointers: list[Pointer], holds: set[int], hides: set[int] = frozenset()  # type: ignore[assignment]
) -> tuple[list[Reach], list[set[int]]]:
    """Return the class of each block, and of those below others the leaders that reach them."""
    roots = [p for p in pointers if p.source < 0]
    reachable = closure({p.target for p in roots if p.strong and not p.ending} | holds, pointers, strong_only=True)
    stack = closure({p.target for p in roots if p.strong and p.ending}, pointers, strong_only=True) - reachable
    if hides & (reachable | stack):
        left = set(range(count)) - reachable - stack
        reachable, stack = (reachable | left, stack) if hides & reachable else (reachable, stack | left)
    aside = {p.target for p in pointers if not p.strong and (p.source < 0 or p.source in reachable | stack)}
    possible = closure(aside, pointers, strong_only=False) - reachable - stack
    if hides & possible:
        possible = set(range(count)) - reachable - stack
    lost = set(range(count)) - reachable - stack - possible
    within = [p for p in pointers if p.source in lost and p.target in lost]
    below = {node: closure({node}, within, strong_only=False) for node in lost}
    leaders = set()
    for node in lost:
        above = {other for other in lost if node in below[other]}
        cycle = {other for other in above if other in below[node]}
        if above == cycle and node == min(cycle):
            leaders.add(node)
    classes = []
    for node in range(count):
        classes.append(
            Reach.REACHABLE if node in reachable else Reach.STACK if node in stack else
            Reach.POSSIBLE if node in possible else Reach.LOST if node in leaders else Reach.INDIRECT
        )
    return classes, [{leader for leader in leaders if node in below[leader]} if node in lost else set()
                     for node in range(count)]
