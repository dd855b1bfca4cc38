"""Current code of a log: the last entry at each address."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import field

from tracer.late_dataclasses import dataclass


@dataclass
class CurrentCode:
    """Ranges that never overlap, in order of address, each with the number of what is there."""

    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _numbers: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._starts)

    def take(self, start: int, end: int) -> list[int]:
        """Make a range empty; return the numbers of what was there."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first >= last:
            return []
        numbers = self._numbers[first:last]
        rest = []
        if self._starts[first] < start:
            rest.append((self._starts[first], start, numbers[0]))
        if self._ends[last - 1] > end:
            rest.append((end, self._ends[last - 1], numbers[-1]))
        self._replace(first, last, rest)
        return numbers

    def put(self, start: int, end: int, number: int) -> list[int]:
        """Let a number stand for a range from now on; return those that did."""
        before = self.take(start, end)
        at = bisect_left(self._starts, start)
        self._replace(at, at, [(start, end, number)])
        return before

    def _replace(self, first: int, last: int, ranges: list[tuple[int, int, int]]) -> None:
        self._starts[first:last] = [start for start, _, _ in ranges]
        self._ends[first:last] = [end for _, end, _ in ranges]
        self._numbers[first:last] = [number for _, _, number in ranges]
