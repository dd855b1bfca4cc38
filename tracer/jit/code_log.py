"""Code log of a JIT: what code was at which address at what time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from heapq import merge

from tracer.jit.current_code import CurrentCode
from tracer.late_dataclasses import dataclass

_PAGE_SHIFT = 12
_LARGE_PAGES = 64
"""What has more pages is kept by itself: a list in each of its pages would take too long to write."""
MOST_FUNCTIONS = 1 << 20
"""What comes later is not kept, but counted; so are more than these:"""
MOST_LARGE = 1 << 12
MOST_LARGE_PAGES = 1 << 22
MOST_NAME_BYTES = 1 << 27

Place = tuple[int, str, int]
"""Address, file, line: from that address on."""


@dataclass(frozen=True, slots=True)
class GeneratedFunction:
    """Code from `start` to `end`. The log said so at some time after `after_ns` and not later than `until_ns`.

    `name` is None where the log says that nothing is there any more. `places` ascend by address.
    """

    start: int
    end: int
    name: str | None
    after_ns: int
    until_ns: int
    places: tuple[Place, ...] = ()

    def place_of(self, address: int) -> tuple[str, int] | None:
        at = bisect_right(self.places, address, key=lambda place: place[0])
        return self.places[at - 1][1:] if at else None


@dataclass(frozen=True)
class Found:
    """The function at an address at a time; None where there is none, or where more than one may be meant."""

    function: GeneratedFunction | None
    candidates: tuple[str, ...] = ()
    """The names that it may have been, where it is not known which."""


NOTHING = Found(None)


@dataclass
class CodeLog:
    """The functions of one address space in the order of the log.

    Whatever a log says, an entry takes microseconds to add: only what is the last at some address is looked at.
    """

    lost: int = 0
    _functions: list[GeneratedFunction] = field(default_factory=list)
    _by_page: dict[int, list[int]] = field(default_factory=dict)
    _current: dict[int, CurrentCode] = field(default_factory=dict)
    """By page, of those that are not large."""
    _large: list[int] = field(default_factory=list)
    _current_large: CurrentCode = field(default_factory=CurrentCode)
    _pages_of_large: int = 0
    _name_bytes: int = 0

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: GeneratedFunction) -> tuple[GeneratedFunction, ...]:
        """Add what the log says next; return the functions, of other names, that may have been there until now."""
        pages = range(function.start >> _PAGE_SHIFT, (function.end - 1 >> _PAGE_SHIFT) + 1)
        is_large = len(pages) > _LARGE_PAGES
        if self.is_full or (is_large and self._has_no_room_for(len(pages))):
            self.lost += 1
            return ()
        number = len(self._functions)
        self._functions.append(function)
        self._name_bytes += len(function.name or "")
        replaced = self._put_large(function, pages, number) if is_large else self._put(function, pages, number)
        found = (self._functions[n] for n in sorted(replaced))
        return tuple(old for old in found if old.name != function.name)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        return len(self._functions) >= MOST_FUNCTIONS or self._name_bytes > MOST_NAME_BYTES

    def _has_no_room_for(self, pages: int) -> bool:
        return len(self._large) >= MOST_LARGE or self._pages_of_large + pages > MOST_LARGE_PAGES

    def _put(self, function: GeneratedFunction, pages: range, number: int) -> set[int]:
        """Keep a function; return the numbers of what was last where it is."""
        replaced = set(self._current_large.take(function.start, function.end))
        for page in pages:
            first, end = page << _PAGE_SHIFT, page + 1 << _PAGE_SHIFT
            current = self._current.setdefault(page, CurrentCode())
            replaced.update(current.put(max(first, function.start), min(end, function.end), number))
            self._by_page.setdefault(page, []).append(number)
        return replaced

    def _put_large(self, function: GeneratedFunction, pages: range, number: int) -> set[int]:
        replaced = set(self._current_large.put(function.start, function.end, number))
        near = pages if len(pages) < len(self._current) else [page for page in self._current if page in pages]
        for page in near:
            if page in self._current:
                replaced.update(self._current[page].take(function.start, function.end))
        self._large.append(number)
        self._pages_of_large += min(len(pages), len(self._current))
        return replaced

    def find(self, address: int, after_ns: int, until_ns: int) -> Found:
        """Return what was at an address at some time after `after_ns` and not later than `until_ns`.

        The last entry before that time wins. One that came in between may or may not have been there: where its name
        is another, nobody knows. Where nothing came before, the first entry that came later is meant: some JITs buffer
        their log, or write it when asked.
        """
        numbers = merge(self._by_page.get(address >> _PAGE_SHIFT, ()), self._large)
        here = [f for f in (self._functions[n] for n in numbers) if f.start <= address < f.end]
        before = [f for f in here if f.until_ns <= after_ns]
        between = [f for f in here if f.until_ns > after_ns and f.after_ns < until_ns]
        possible = [*before[-1:], *between] or here[:1]
        if not possible:
            return NOTHING
        names = tuple(dict.fromkeys(f.name for f in possible))
        if len(names) > 1:
            return Found(None, tuple(name or "nothing" for name in names))
        return Found(possible[-1] if names[0] is not None else None)
