"""Compare the puts that refleak calls too early with those that mutants make before the last use of their object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from call_sites import Code, read_code
from moved import use_before
from program import Program
from recordings import Run, as_calls
from score import NAMED, Words, by_half, said_of, share
from sites import Site

from tracer.model.findings import REINITIALISED, ErrorFinding, FrameList


@dataclass(frozen=True)
class ScoredMove:
    """Of one run: its errors by whether the moved put is blamed, and by kind, and what is called leaked falsely."""

    words: Words
    crashed: bool
    false_leaks: int
    """Objects: a put that is moved is none that is missing."""
    wrong: tuple[str, ...]


def score_moved_puts(
    program: Program, kind_of_mutant: str, site: Site, recording: Path, unmodified: Path
) -> ScoredMove | None:
    """Score a run, crashed or not; None where data were lost. `kind_of_mutant`: there is but one."""
    found = Run(program, recording).analysed()
    if not found.complete:
        return None
    behind_use = use_before(_code(program), site.address).end
    words, wrong = Words(), []
    for error in found.errors:
        if program.family(error.type or "") != site.kind or error.kind == REINITIALISED:
            continue
        put = _blamed(error)
        right = any(frame.address == behind_use for frame in put)
        words[right, error.kind] += error.count
        if not right:
            named = " < ".join(f"{function}:{line}" for function, line in as_calls(put)[:NAMED])
            wrong.append(f"{error.count} {error.kind}: named {named} ({error.reason})")
    known = {leak.id for leak in Run(program, unmodified).analysed().leaks}
    leaks = [leak for leak in found.leaks if leak.kind == "reference" and leak.id not in known]
    false = [leak for leak in leaks if not found.crashed]
    wrong += [f"{leak.count} leaked {leak.type}" for leak in false]
    return ScoredMove(words, found.crashed, sum(leak.count for leak in false), tuple(wrong))


def _blamed(error: ErrorFinding) -> FrameList:
    """Return the put that is called wrong: of what was taken after the end that by which it ended."""
    return error.probably or (error.released_at if error.kind == "use-after-zero" else None) or error.stack


@cache
def _code(program: Program) -> Code:
    return read_code(program)


def print_moved_puts(program: Program, runs: Iterable[tuple[Site, Path, ScoredMove]], show_wrong: bool) -> None:
    """Print what both halves scored, as `by_half` gives it."""
    for half, of_half in by_half(program, runs, show_wrong):
        with_any = [one for one in of_half if one.words]
        ended = sum(one.crashed for one in with_any), sum(one.crashed and not one.words for one in of_half)
        total = sum((one.words for one in with_any), Counter[tuple[bool, str]]())
        mean = sum(share(one.words) for one in with_any) / max(1, len(with_any))
        print(f"half {half}: {len(of_half)} runs, {len(with_any)} with errors ({ended[0]} of them crashed), "
              f"{ended[1]} crashed without any")  # fmt: skip
        print(f"  {total.total():,} errors, the moved put blamed {share(total):.1%}, mean of runs {mean:.1%}")
        print(f"    {said_of(total)}")
        print(f"  false leaks: {sum(one.false_leaks for one in of_half):,} objects")
