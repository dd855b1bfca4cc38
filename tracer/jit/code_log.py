"""What code was at which address at what time, as a JIT's log tells it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

_PAGE_SHIFT = 12
MOST_FUNCTIONS = 1 << 20
"""What comes later is not kept, but counted."""

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
    """The functions of one address space in the order of the log."""

    lost: int = 0
    _functions: list[GeneratedFunction] = field(default_factory=list)
    _by_page: dict[int, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: GeneratedFunction) -> tuple[GeneratedFunction, ...]:
        """Add what the log says next; return the functions, of other names, that may have been there until now."""
        if len(self._functions) >= MOST_FUNCTIONS:
            self.lost += 1
            return ()
        number = len(self._functions)
        replaced: set[int] = set()
        for page in range(function.start >> _PAGE_SHIFT, (function.end - 1 >> _PAGE_SHIFT) + 1):
            numbers = self._by_page.setdefault(page, [])
            replaced.update(n for n in numbers if _replaces(function, self._functions[n]))
            numbers.append(number)
        self._functions.append(function)
        return tuple(self._functions[n] for n in sorted(replaced))

    def find(self, address: int, after_ns: int, until_ns: int) -> Found:
        """Return what was at an address at some time after `after_ns` and not later than `until_ns`.

        The last entry before that time wins. One that came in between may or may not have been there: where its name
        is another, nobody knows. Where nothing came before, the first entry that came later is meant: some JITs buffer
        their log, or write it when asked.
        """
        here = [self._functions[n] for n in self._by_page.get(address >> _PAGE_SHIFT, ())]
        here = [f for f in here if f.start <= address < f.end]
        before = [f for f in here if f.until_ns <= after_ns]
        between = [f for f in here if f.until_ns > after_ns and f.after_ns < until_ns]
        possible = [*before[-1:], *between] or here[:1]
        if not possible:
            return NOTHING
        names = tuple(dict.fromkeys(f.name for f in possible))
        if len(names) > 1:
            return Found(None, tuple(name or "nothing" for name in names))
        return Found(possible[-1] if names[0] is not None else None)


def _replaces(new: GeneratedFunction, old: GeneratedFunction) -> bool:
    return old.start < new.end and new.start < old.end and old.name != new.name
