"""Compare what refleak says of mutants with what was left out of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

from program import Calls, Program
from recordings import Run, as_calls

from tracer.model.findings import Leak, UnpairedGet

Words = Counter[tuple[bool, str]]
"""Objects by whether the first reference is the right one, and by its word."""


_NAMED = 6


@dataclass(frozen=True)
class Site:
    """A call of a put."""

    address: int
    kind: str
    stack: Calls
    workloads: dict[str, int] = field(hash=False)
    """How often it was executed in each."""

    def half(self, program: Program) -> int:
        """Return 0 or 1, by the hash of the place."""
        function, line = program.slots.unwrapped(self.stack)[0]
        return int(sha256(f"{function}:{line}".encode()).hexdigest(), 16) % 2

    def plain(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def read(cls, plain: dict[str, object]) -> Site:
        stack = tuple((str(function), int(line)) for function, line in plain.pop("stack"))  # type: ignore[attr-defined]
        return cls(stack=stack, **plain)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scored:
    """Of one run: its own objects (whose put was left out) and those that they keep alive."""

    own: Words
    several: Words
    """Of the own objects those to which more than one reference was taken."""
    kept_alive: Words
    said: Counter[tuple[bool, str]]
    """Entries by whether the first reference is the right one, and by what the report says how likely that is."""
    cause_first: bool
    seconds: float
    wrong: tuple[str, ...]


def score(program: Program, site: Site, recording: Path, unmodified: Path) -> Scored | None:
    """Score a run; None where it proves nothing: data were lost, it crashed, or nothing of the family was left."""
    found = Run(program, recording).analysed()
    known = {leak.id for leak in Run(program, unmodified).analysed().leaks}
    leaks = [leak for leak in found.leaks if leak.kind == "reference" and leak.id not in known]
    kinds = [program.family(leak.type or "") for leak in leaks]
    if not found.complete or found.crashed or site.kind not in kinds:
        return None
    own, several, kept_alive = Words(), Words(), Words()
    said = Counter[tuple[bool, str]]()
    wrong = []
    for leak, kind in zip(leaks, kinds, strict=True):
        wanted = {program.slots.put_slot(kind, site.stack)} if kind == site.kind else program.held.get(kind, set())
        word = leak.unpaired[0].confidence if leak.unpaired else "nothing said"
        right = bool(leak.unpaired) and not wanted.isdisjoint(_first(program, kind, leak))
        (own if kind == site.kind else kept_alive)[right, word] += leak.count
        if kind == site.kind and (leak.gets or leak.puts):
            several[right, word] += leak.count
        if leak.unpaired:
            said[right, _likelihood(leak.unpaired[0])] += 1
        if not right:
            calls = as_calls(leak.unpaired[0].stack) if leak.unpaired else ()
            named = " < ".join(f"{function}:{line}" for function, line in calls[:_NAMED])
            mark = "" if kind == site.kind else f" kept alive {kind}"
            wrong.append(f"{leak.count}{mark} {word}: wanted {', '.join(sorted(wanted))}; named {named}")
    return Scored(own, several, kept_alive, said, kinds[0] == site.kind, found.seconds, tuple(wrong))


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
            shares = [_share(words) for words in each]
            mean = sum(shares) / max(1, len(shares))
            print(f"  {name}: {total.total():,} objects, right {_share(total):.1%}, mean of runs {mean:.1%}")
            print(f"    {_said(total)}")
        entries = sum((one.said for one in of_half), Counter[tuple[bool, str]]())
        told = (f"{word} {entries[True, word]} of {entries[True, word] + entries[False, word]}"
                for word in sorted({word for _, word in entries}))  # fmt: skip
        print(f"  entries right, by what is said: {', '.join(told)}")


def _share(words: Words) -> float:
    return sum(count for (right, _), count in words.items() if right) / max(1, words.total())


def _said(words: Words) -> str:
    return ", ".join(
        f"{'right' if right else 'wrong'} and {word} {count:,}" for (right, word), count in sorted(words.items())
    )
