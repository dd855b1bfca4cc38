"""The flow of control between the instructions of one function, cold parts included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Line
from tracer.elf.image import PF_X, Image
from tracer.late_dataclasses import dataclass

LARGEST_FUNCTION = 1 << 18
_ENDS = ("ret", "ud2", "hlt", "int3")
_MOST_CASES = 4096

@dataclass(frozen=True)
class FlowGraph:
    """Instructions by link address; edges go where control can go, calls to what follows them."""

    lines: Mapping[int, Line]
    roots: frozenset[int]
    """Where control comes in: the first instruction, and what nothing known leads to."""
    successors: Mapping[int, tuple[int, ...]]
    predecessors: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def reachable(self, starts: Iterable[int], avoid: int, *, backwards: bool = False) -> set[int]:
        """Return what control can reach from `starts` (or reach them from) without passing `avoid`; they count."""
        edges = self.predecessors if backwards else self.successors
        todo = [start for start in starts if start != avoid]
        seen = set(todo)
        while todo:
            for to in edges.get(todo.pop(), ()):
                if to != avoid and to not in seen:
                    seen.add(to)
                    todo.append(to)
        return seen

    def is_decision(self, address: int) -> bool:
        """Tell whether more than one way leads on from an instruction, one of them perhaps out of the function."""
        line = self.lines[address]
        return line.is_indirect_jump or (line.name.startswith(("j", "loop")) and line.name != "jmp")


def flow_graph(image: Image, ranges: Iterable[tuple[int, int]]) -> FlowGraph | None:
    """Return the graph of the function whose code is `ranges`; None where it cannot be decoded or is too large."""
    lines: dict[int, Line] = {}
    first = None
    for start, end in ranges:
        offset = image.file_offset_of(start)
        if offset is None or end - start > LARGEST_FUNCTION:
            return None
        code = bytes(image.data[offset : offset + end - start])
        reached = start
        for line in ARCHITECTURE.lines_of(code, start):
            lines[line.address] = line
            reached = line.end
        if reached != end:
            return None
        first = start if first is None else first
    return _Builder(image, lines, first).graph() if first is not None else None


class _Builder:
    def __init__(self, image: Image, lines: dict[int, Line], first: int) -> None:
        self._image, self._lines, self._first = image, lines, first

    def graph(self) -> FlowGraph:
        successors = {address: [*self._direct(line)] for address, line in self._lines.items()}
        orphans = self._orphans(successors)
        jumps = [a for a, line in self._lines.items() if line.is_indirect_jump]
        cases = orphans | (self._cases() if jumps else set())
        for jump in jumps:
            successors[jump] = [*cases]
        roots = frozenset((self._first,) if jumps else (self._first, *orphans))
        predecessors: dict[int, list[int]] = {}
        for address, targets in successors.items():
            for to in targets:
                predecessors.setdefault(to, []).append(address)
        return FlowGraph(
            self._lines, roots, {a: tuple(t) for a, t in successors.items()},
            {a: tuple(f) for a, f in predecessors.items()},
        )  # fmt: skip

    def _direct(self, line: Line) -> Iterator[int]:
        name = line.name
        if name.startswith(_ENDS) or line.is_indirect_jump:
            return
        if name != "jmp" and line.end in self._lines:
            yield line.end
        if name != "call" and line.target is not None and line.target in self._lines:
            yield line.target

    def _orphans(self, successors: dict[int, list[int]]) -> set[int]:
        """Return what no known way leads to: cases of a switch, landing pads, dead code; padding leads nowhere."""
        ways = Counter(to for targets in successors.values() for to in targets)
        orphans: set[int] = set()
        for address in sorted(self._lines):
            if address == self._first or ways[address]:
                continue
            if self._lines[address].is_padding:
                ways.subtract(successors[address])
                successors[address] = []
            else:
                orphans.add(address)
        return orphans

    def _cases(self) -> set[int]:
        """Return the instructions that tables of distances to code lead to, as compilers make them for a switch."""
        found: set[int] = set()
        for line in self._lines.values():
            table = ARCHITECTURE.address_of(line)
            if table is not None:
                found.update(self._entries(table))
        return found

    def _entries(self, table: int) -> Iterator[int]:
        segment = next((s for s in self._image.segments if s.link_address <= table < s.link_address + s.file_size
                        and not s.flags & PF_X), None)  # fmt: skip
        if segment is None:
            return
        at = segment.file_offset + table - segment.link_address
        for number in range(_MOST_CASES):
            raw = bytes(self._image.data[at + 4 * number : at + 4 * number + 4])
            target = table + int.from_bytes(raw, "little", signed=True)
            if len(raw) < 4 or target not in self._lines:
                return
            yield target
