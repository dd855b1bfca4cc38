"""Random graphs of blocks for graphs.c, with the class of each block as it follows from how they were made.

The rules are memcheck's (memcheck/mc_leakcheck.c): a root holds; a block that only a chain with a pointer into some
middle leads to is possibly lost; of what nothing holds, one block of each strongly connected component that no other
one points at is lost, and the rest indirectly so. Which block of a component is not said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

BLOCKS = 60
FIRST = 10
"""The number in the name of the first maker."""
ROOTS = "gtswvm"
SLOTS = 16
_FIRST_WORD, _WORDS = 4, 10
"""Pointers stand behind what a freed block keeps for malloc, and lead farther in than memcheck's guesses at arrays."""


@dataclass(frozen=True)
class Pointer:
    to: int
    plus: int = 0
    tag: int = 0

    @property
    def is_inner(self) -> bool:
        return self.plus > 0


@dataclass
class Graph:
    sizes: list[int]
    edges: dict[int, list[tuple[int, Pointer]]] = field(default_factory=dict)
    """By block: its words with pointers."""
    roots: list[tuple[str, int, Pointer]] = field(default_factory=list)
    freed: set[int] = field(default_factory=set)

    def text(self) -> str:
        lines = [f"b {block} {size}" for block, size in enumerate(self.sizes)]
        for block, out in self.edges.items():
            lines += [f"e {block} {8 * word} {p.to} {p.plus + p.tag}" for word, p in out]
        lines += [f"r {kind} {slot} {p.to} {p.plus + p.tag}" for kind, slot, p in self.roots]
        return "\n".join(lines + [f"f {block}" for block in sorted(self.freed)]) + "\n"

    def classes(self) -> Counter[tuple[str, int]]:
        """Return how many blocks of a component, by its least block, are of a class."""
        from_roots = [pointer for _, _, pointer in self.roots]
        reachable = self._reached((p.to for p in from_roots if not p.is_inner), through_inner=False)
        any_way = self._reached((p.to for p in from_roots), through_inner=True)
        left = set(range(len(self.sizes))) - self.freed - any_way
        found: Counter[tuple[str, int]] = Counter(("reachable", block) for block in reachable)
        found.update(("possible", block) for block in any_way - reachable)
        for component in components(left, {b: self._reached([b], through_inner=True) & left for b in left}):
            name = min(component)
            owners = {b for b in left - component if component & {p.to for _, p in self.edges.get(b, ())}}
            lost = 0 if owners else 1
            found["lost", name] += lost
            found["indirect", name] += len(component) - lost
        return +found

    def component_of(self, block: int) -> int:
        """Return the least block of the component that a block is of, if nothing holds it; else itself."""
        held = self._reached((p.to for _, _, p in self.roots), through_inner=True)
        if block in held:
            return block
        ways = self._reached([block], through_inner=True)
        return min([block, *(other for other in ways if block in self._reached([other], through_inner=True))])

    def _reached(self, blocks: Iterable[int], *, through_inner: bool) -> set[int]:
        found: set[int] = set()
        todo = [block for block in blocks if block not in self.freed]
        while todo:
            block = todo.pop()
            if block not in found:
                found.add(block)
                todo += [p.to for _, p in self.edges.get(block, ())
                         if p.to not in self.freed and (through_inner or not p.is_inner)]  # fmt: skip
        return found


def components(blocks: set[int], reached: dict[int, set[int]]) -> list[set[int]]:
    found, seen = [], set[int]()
    for block in sorted(blocks):
        if block not in seen:
            found.append({block} | {other for other in reached[block] if block in reached[other]})
            seen |= found[-1]
    return found


def random_graph(seed: int, *, tagged: bool = False, roots: str = ROOTS) -> Graph:
    """Return chains, cycles, trees and random edges, some of which are held by roots and some by freed blocks."""
    random = Random(seed)
    graph = Graph([8 * (_FIRST_WORD + _WORDS) + 8 * random.randrange(20) for _ in range(BLOCKS)])

    def pointer(to: int) -> Pointer:
        plus = 8 * random.randrange(_FIRST_WORD, _FIRST_WORD + _WORDS) if random.random() < 0.15 else 0
        tag = random.choice((0, 1, 3, 7, 5 << 48, 0xFFFF << 48)) if tagged else 0
        return Pointer(to, plus, tag)

    def link(block: int, to: int) -> None:
        used = {word for word, _ in graph.edges.get(block, ())}
        free = [word for word in range(_FIRST_WORD, _FIRST_WORD + _WORDS) if word not in used]
        if free:
            graph.edges.setdefault(block, []).append((random.choice(free), pointer(to)))

    order = random.sample(range(BLOCKS), BLOCKS)
    while order:
        some = [order.pop() for _ in range(min(len(order), random.randint(1, 9)))]
        shape = random.choice(("chain", "cycle", "tree", "star"))
        for at, block in enumerate(some[1:], start=1):
            link(some[at - 1 if shape in ("chain", "cycle") else (at - 1) // 2 if shape == "tree" else 0], block)
        if shape == "cycle":
            link(some[-1], some[0])
    for _ in range(random.randrange(12)):
        link(random.randrange(BLOCKS), random.randrange(BLOCKS))
    graph.freed = set(random.sample(range(BLOCKS), random.randrange(6)))
    places = [(kind, slot) for kind in roots for slot in range(SLOTS)]
    for kind, slot in random.sample(places, random.randrange(2, 16)):
        graph.roots.append((kind, slot, pointer(random.randrange(BLOCKS))))
    return graph
