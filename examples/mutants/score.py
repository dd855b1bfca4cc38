"""Compare what refleak says of mutants with what was left out of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from program import Program
from recordings import Run, as_calls
from sites import GET_TWICE, Site

from tracer.model.findings import Leak, UnpairedGet

Words = Counter[tuple[bool, str]]
"""Objects by whether the first reference is the right one, and by its word."""
NAMED = 6
"""Frames that are shown of a stack."""


@dataclass(frozen=True)
class Scored:
    """Of one run: its own objects (whose put was left out, or whose get was made twice) and what they keep alive."""

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
    known = {leak.id for leak in Run(program, unmodified).analysed().leaks}
    leaks = [leak for leak in found.leaks if leak.kind == "reference" and leak.id not in known]
    truth = GetTwice(program, site) if kind_of_mutant == GET_TWICE else LeftOut(program, site)
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
    """A put was left out: right is a reference that fills the slot which that put empties."""

    def __init__(self, program: Program, site: Site) -> None:
        self._program = program
        self._kind = site.kind
        self._slot = program.slots.put_slot(site.kind, site.stack)

    def is_own(self, kind: str, leak: Leak) -> bool:
        return kind == self._kind

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


def _is_held(program: Program, kind: str, leak: Leak) -> bool:
    """Tell whether the first reference is one in another counted object, which keeps this one alive."""
    return not program.held.get(kind, set()).isdisjoint(_first(program, kind, leak))


def _likelihood(get: UnpairedGet) -> str:
    """Return the word that is said of a get, of a weak one its probability in tenths."""
    return get.confidence if get.confidence != "weak" else f"weak {math.floor(10 * (get.probability or 0)) / 10}"


def _first(program: Program, kind: str, leak: Leak) -> set[str]:
    first = leak.unpaired[0]
    return program.slots.get_slots(kind, as_calls(first.stack), first.stack == leak.callers)


def print_table(program: Program, runs: Iterator[tuple[Site, Path, Scored]], show_wrong: bool) -> None:
    """Print what both halves scored. `show_wrong`: and the wrong answers of the first; the second is held back."""
    by_half: defaultdict[int, list[Scored]] = defaultdict(list)
    for site, recording, scored in runs:
        half = site.half(program)
        by_half[half].append(scored)
        if show_wrong and half == 0 and scored.wrong:
            print(recording.stem, site.kind, program.slots.unwrapped(site.stack)[0], *scored.wrong[:5], sep="\n    ")
    for half, of_half in sorted(by_half.items()):
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
