"""Compare what refleak says of mutants with what was left out of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from program import Calls, Program
from recordings import Run, as_calls
from sites import GET_TWICE, Site

from tracer.model.findings import Leak, UnpairedGet

Words = Counter[tuple[bool, str]]
"""Objects by whether the first reference is the right one, and by its word."""
_Taken = tuple[Calls, frozenset[tuple[Calls, int]]]
"""Where an object was made, and how often it was taken where."""
NAMED = 6
"""Frames that are shown of a stack."""


@dataclass(frozen=True)
class Scored:
    """Of one run: its own objects (whose put was left out, or whose get was made twice) and what they keep alive.

    Both may be of one type, as a container and what it contains.
    """

    own: Words
    several: Words
    """Of the own objects those to which more than one reference was taken."""
    kept_alive: Words
    said: Counter[tuple[bool, str]]
    """Entries by whether the first reference is the right one, and by what the report says how likely that is."""
    cause_first: bool
    seconds: float
    wrong: tuple[str, ...]


def score(program: Program, kind_of_mutant: str, site: Site, recording: Path, unmodified: Path) -> Scored | None:
    """Score a run; None where it proves nothing: data were lost, it crashed, or nothing of the family was left."""
    found = Run(program, recording).analysed()
    plain = Run(program, unmodified)
    known = {leak.id for leak in plain.analysed().leaks}
    leaks = [leak for leak in found.leaks if leak.kind == "reference" and leak.id not in known]
    truth = GetTwice(program, site) if kind_of_mutant == GET_TWICE else LeftOut(program, site, plain)
    kinds = [program.family(leak.type or "") for leak in leaks]
    is_own = [truth.is_own(kind, leak) for kind, leak in zip(kinds, leaks, strict=True)]
    if not found.complete or found.crashed or not any(is_own):
        return None
    own, several, kept_alive = Words(), Words(), Words()
    said = Counter[tuple[bool, str]]()
    wrong = []
    for leak, kind, mine in zip(leaks, kinds, is_own, strict=True):
        word = leak.unpaired[0].confidence if leak.unpaired else "nothing said"
        right = bool(leak.unpaired) and (truth.is_right(leak) if mine else _is_held(program, kind, leak))
        (own if mine else kept_alive)[right, word] += leak.count
        if mine and (leak.gets or leak.puts):
            several[right, word] += leak.count
        if leak.unpaired:
            said[right, _likelihood(leak.unpaired[0])] += 1
        if not right:
            calls = as_calls(leak.unpaired[0].stack) if leak.unpaired else ()
            named = " < ".join(f"{function}:{line}" for function, line in calls[:NAMED])
            mark = "" if mine else f" kept alive {kind}"
            wrong.append(f"{leak.count}{mark} {word}: wanted {truth}; named {named}")
    return Scored(own, several, kept_alive, said, is_own[0], found.seconds, tuple(wrong))


class LeftOut:
    """A put was left out: right is a reference that fills the slot which that put empties.

    Objects of that type may live by others of it, as what a container contains. They are not the mutant's own: what
    they lack is told by the slots, and by what such objects of the program as it is give back.
    """

    def __init__(self, program: Program, site: Site, plain: Run) -> None:
        self._program = program
        self._kind = site.kind
        self._slot = program.slots.put_slot(site.kind, site.stack)
        self._plain: defaultdict[_Taken, list[Counter[Calls]]] = defaultdict(list)
        for kind, life in plain.lives():
            if kind == self._kind:
                gets, puts = (
                    _calls((plain.calls(stack), round(count)) for stack, count in zip(stacks, counts, strict=True))
                    for stacks, counts in ((life.gets[1:], life.taken[1:].tolist()), (life.puts, life.given.tolist()))
                )
                self._plain[plain.calls(life.gets[0]), frozenset(gets.items())].append(puts)

    def is_own(self, kind: str, leak: Leak) -> bool:
        return kind == self._kind and self._may_lack_the_put(leak) and not self._is_held(leak)

    def _may_lack_the_put(self, leak: Leak) -> bool:
        """Tell whether more was taken for the slot than given back."""
        slots = self._program.slots
        births = leak.count * (self._slot in slots.get_slots(self._kind, as_calls(leak.callers), birth=True))
        gets = sum(
            get.count
            for get in leak.gets
            if self._slot in slots.get_slots(self._kind, as_calls(get.stack), birth=False)
        )
        puts = sum(put.count for put in leak.puts if slots.put_slot(self._kind, as_calls(put.stack)) == self._slot)
        return births + gets > puts

    def _is_held(self, leak: Leak) -> bool:
        """Tell whether objects that lived so lack, in the program as it is, the put of what another one holds."""
        if any(one.count % leak.count for one in (*leak.gets, *leak.puts)):
            return False  # not all of them lived alike
        gets, puts = (
            _calls((as_calls(one.stack), one.count // leak.count) for one in some) for some in (leak.gets, leak.puts)
        )
        lives = self._plain.get((as_calls(leak.callers), frozenset(gets.items())), [])
        lacking = {
            self._program.slots.put_slot(self._kind, put) for given in lives if not puts - given for put in given - puts
        }
        return bool(lacking) and lacking <= self._program.held.get(self._kind, set()) - {self._slot}

    def is_right(self, leak: Leak) -> bool:
        return self._slot in _first(self._program, self._kind, leak)

    def __str__(self) -> str:
        return self._slot


class GetTwice:
    """A get was made twice: right is that very call, and no other that fills the same slot."""

    def __init__(self, program: Program, site: Site) -> None:
        self._program = program
        self._site = site

    def is_own(self, kind: str, leak: Leak) -> bool:
        return kind == self._site.kind and any(self._site.is_in(as_calls(get.stack)) for get in leak.gets)

    def is_right(self, leak: Leak) -> bool:
        return self._site.is_in(as_calls(leak.unpaired[0].stack))

    def __str__(self) -> str:
        return " < ".join(f"{function}:{line}" for function, line in self._site.stack)


def _calls(counted: Iterable[tuple[Calls, int]]) -> Counter[Calls]:
    found = Counter[Calls]()
    for calls, count in counted:
        found[calls] += count
    return found


def _is_held(program: Program, kind: str, leak: Leak) -> bool:
    """Tell whether the first reference is one in another counted object, which keeps this one alive."""
    return not program.held.get(kind, set()).isdisjoint(_first(program, kind, leak))


def _likelihood(get: UnpairedGet) -> str:
    """Return the word that is said of a get, of a weak one its probability in tenths."""
    return get.confidence if get.confidence != "weak" else f"weak {math.floor(10 * (get.probability or 0)) / 10}"


def _first(program: Program, kind: str, leak: Leak) -> set[str]:
    first = leak.unpaired[0]
    return program.slots.get_slots(kind, as_calls(first.stack), first.stack == leak.callers)


class HasWrong(Protocol):
    @property
    def wrong(self) -> tuple[str, ...]: ...


T = TypeVar("T", bound=HasWrong)


def by_half(
    program: Program, runs: Iterable[tuple[Site, Path, T]], show_wrong: bool
) -> Iterable[tuple[int, list[T]]]:  # fmt: skip
    """Return the scores of each half. `show_wrong`: print the wrong answers of the first; the second is held back."""
    halves: defaultdict[int, list[T]] = defaultdict(list)
    for site, recording, scored in runs:
        half = site.half(program)
        halves[half].append(scored)
        if show_wrong and half == 0 and scored.wrong:
            print(recording.stem, site.kind, *program.slots.unwrapped(site.stack)[:2], *scored.wrong[:5], sep="\n    ")
    return sorted(halves.items())


def print_table(program: Program, runs: Iterator[tuple[Site, Path, Scored]], show_wrong: bool) -> None:
    """Print what both halves scored, as `by_half` gives it."""
    for half, of_half in by_half(program, runs, show_wrong):
        first = sum(one.cause_first for one in of_half)
        slowest = max(one.seconds for one in of_half)
        print(f"half {half}: {len(of_half)} runs, the cause first in {first}, slowest analysis {slowest:.1f} s")
        for name in ("own", "several", "kept_alive"):
            each: list[Words] = [getattr(one, name) for one in of_half if getattr(one, name)]
            total = sum(each, Counter())
            shares = [share(words) for words in each]
            mean = sum(shares) / max(1, len(shares))
            print(f"  {name}: {total.total():,} objects, right {share(total):.1%}, mean of runs {mean:.1%}")
            print(f"    {said_of(total)}")
        entries = sum((one.said for one in of_half), Counter[tuple[bool, str]]())
        told = (f"{word} {entries[True, word]} of {entries[True, word] + entries[False, word]}"
                for word in sorted({word for _, word in entries}))  # fmt: skip
        print(f"  entries right, by what is said: {', '.join(told)}")


def share(words: Words) -> float:
    return sum(count for (right, _), count in words.items() if right) / max(1, words.total())


def said_of(words: Words) -> str:
    return ", ".join(
        f"{'right' if right else 'wrong'} and {word} {count:,}" for (right, word), count in sorted(words.items())
    )
