"""Compare the puts that refleak calls one too many with what mutants make twice, or with what answers the get that they
leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from program import Calls, Program
from recordings import Run, as_calls
from score import NAMED, Words, by_half, said_of, share
from sites import PUT_TWICE, Site

from tracer.model.findings import ErrorFinding

_KIND = "over-put"
_WEAK = "order and nearness"
_ENDS = {_WEAK: "weak", "this one did not": "taken elsewhere", "no object that ended well was put there": "new place"}
"""What the reason says, and one word for it."""


@dataclass(frozen=True)
class ScoredErrors:
    """Of one run: its over-puts by whether the right put is named, and by how sure refleak is."""

    words: Words
    crashed: bool
    others: Counter[str]
    """Errors of other kinds."""
    wrong: tuple[str, ...]


def score_extra_puts(
    program: Program, kind_of_mutant: str, site: Site, recording: Path, unmodified: Path
) -> ScoredErrors | None:
    """Score a run, crashed or not; None where data were lost."""
    truth = PutTwice(site) if kind_of_mutant == PUT_TWICE else GetLeftOut(program, site, unmodified)
    found = Run(program, recording).analysed()
    if not found.complete:
        return None
    words, wrong = Words(), []
    mine = [error for error in found.errors if program.family(error.type or "") == site.kind]
    for error in mine:
        if error.kind == _KIND:
            calls = as_calls(error.probably or error.stack)
            right = truth.is_right(calls)
            words[right, _word(error)] += error.count
            if not right:
                named = " < ".join(f"{function}:{line}" for function, line in calls[:NAMED])
                wrong.append(f"{error.count} {_word(error)}: named {named} ({error.reason})")
    others = Counter({error.kind: error.count for error in mine if error.kind != _KIND})
    return ScoredErrors(words, found.crashed, others, tuple(wrong))


class PutTwice:
    """A put was made twice: right is that very call."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def is_right(self, put: Calls) -> bool:
        return self._site.is_in(put)


class GetLeftOut:
    """A get was left out: right is a put that empties a slot which that call fills in the program as it is."""

    def __init__(self, program: Program, site: Site, unmodified: Path) -> None:
        self._program, self._kind = program, site.kind
        traced = Run(program, unmodified)
        stacks = (traced.calls(stack) for stack in traced.get_counts() if site.address in traced.call_addresses(stack))
        self._slots = {slot for stack in stacks for slot in program.slots.get_slots(site.kind, stack, birth=False)}

    def is_right(self, put: Calls) -> bool:
        return self._program.slots.put_slot(self._kind, put) in self._slots


def _word(error: ErrorFinding) -> str:
    if error.probably is None or error.reason is None:
        return "nothing said"
    return next((word for end, word in _ENDS.items() if end in error.reason), "strong")


def print_extra_puts(program: Program, runs: Iterable[tuple[Site, Path, ScoredErrors]], show_wrong: bool) -> None:
    """Print what both halves scored, as `by_half` gives it."""
    for half, of_half in by_half(program, runs, show_wrong):
        with_any = [one for one in of_half if one.words]
        crashed = sum(one.crashed for one in with_any)
        silent = sum(one.crashed and not one.words for one in of_half)
        total = sum((one.words for one in with_any), Words())
        mean = sum(share(one.words) for one in with_any) / max(1, len(with_any))
        print(f"half {half}: {len(of_half)} runs, {len(with_any)} with over-puts ({crashed} of them crashed), "
              f"{silent} crashed without any")  # fmt: skip
        print(f"  {total.total():,} over-puts, right {share(total):.1%}, mean of runs {mean:.1%}")
        print(f"    {said_of(total)}")
        others = sum((one.others for one in of_half), Counter[str]())
        print(f"  other errors of the type: {', '.join(f'{kind} {count:,}' for kind, count in others.most_common())}")
