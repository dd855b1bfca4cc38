"""A sample of the mutants of docs/pairing.md: perf with one put left out, thirty times."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import CHECKOUT
from traced_perf import built

sys.path.append(str(CHECKOUT / "examples" / "mutants"))

from measurement import How, check, run, scored
from perf_program import Perf
from score import Scored, Words, score, share
from sites import LEFT_OUT

MUTANTS = 30
WORKLOADS = {
    "rec", "recgr", "rep", "repg", "repgc", "script", "scriptm", "stat", "statthr", "bidh", "inj", "diff", "annot",
    "errrep",
}  # fmt: skip


class BrieflyRun(Perf):
    """perf with some of its workloads."""

    def workloads(self, out: Path) -> dict[str, list[str]]:
        return {name: arguments for name, arguments in super().workloads(out).items() if name in WORKLOADS}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> list[Scored]:
    built("perf")
    program, out = BrieflyRun(), tmp_path_factory.mktemp("mutants")
    how = How(LEFT_OUT, sometimes=False, memory=False, sample=MUTANTS)
    assert check(program, out, show_wrong=True) == 0, "the slots of perf as it is do not come out"
    run(program, out, how, 1)
    return [found for _, _, found in scored(score, program, out, how)]


def test_most_mutants_can_be_scored(scores: list[Scored]) -> None:
    """Others leave nothing of the type, or crash."""
    assert len(scores) >= MUTANTS // 2


def test_the_right_reference_stands_first(scores: list[Scored]) -> None:
    own: Words = sum((one.own for one in scores), Counter())
    wrong = [line for one in scores for line in one.wrong]
    assert own.total() >= 100
    assert share(own) >= 0.9, wrong
    assert own[False, "strong"] <= 0.01 * own.total(), wrong
