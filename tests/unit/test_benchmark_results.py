"""What the benchmark computes from what it measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.commands import Unmeasured
from benchmarks.document import BEGIN, END, fill
from benchmarks.goals import Goal
from benchmarks.mixed import own_seconds
from benchmarks.samples import Samples, samples_of, text_of_ratio, text_of_time
from benchmarks.tables import Table


def test_a_ratio_is_made_of_the_rounds_that_both_have() -> None:
    ratio = Samples({0: 30.0, 1: 10.0, 3: 99.0}).over(Samples({0: 10.0, 1: 10.0, 2: 1.0}))
    assert ratio.by_round == {0: 3.0, 1: 1.0}
    assert text_of_ratio(ratio) == "2.00 (1.00-3.00)"
    assert text_of_ratio(samples_of(12.34)) == "12.3"
    assert text_of_ratio(Samples()) == "-"


def test_times_have_their_unit() -> None:
    assert [text_of_time(ns) for ns in (8.125, 1_190, 16_400_000, 2e9)] == ["8.12 ns", "1.19 µs", "16.4 ms", "2.00 s"]


@pytest.mark.parametrize(
    ("goal", "samples", "verdict"),
    [
        (Goal("g", "f", 2.0), samples_of(1.0, 2.0, 9.0), "reached"),
        (Goal("g", "f", 2.0), samples_of(3.0), "missed, by 50 %"),
        (Goal("g", "f", 8.0, at_least=True), samples_of(4.0), "missed, by 50 %"),
        (Goal("g", "f", 8.0, at_least=True), samples_of(8.0), "reached"),
        (Goal("g", "f", 1.0, or_in_noise=True), samples_of(0.99, 1.5, 1.6), "reached"),
        (Goal("g", "f", 1.0, or_in_noise=True), samples_of(1.25, 1.5), "missed, by 25 %"),
        (Goal("g", "f", 2.0), None, "not measured"),
    ],
)
def test_a_goal_is_judged(goal: Goal, samples: Samples | None, verdict: str) -> None:
    assert goal.verdict(samples) == verdict


def test_a_load_is_the_process_that_began_last(tmp_path: Path) -> None:
    stamps = tmp_path / "stamps"
    stamps.write_text("10 1000000000\n11 2000000000\n11 2500000000\n10 9000000000\n")
    assert own_seconds(stamps) == 0.5
    stamps.write_text("10 1000000000\n")
    with pytest.raises(Unmeasured, match="no stamp at its end"):
        own_seconds(stamps)


def test_a_table_is_markdown() -> None:
    table = Table("T", ["a", "b"], [["1|2", "x"]], ["note", "note"])
    assert table.markdown() == "### T\n\n| a    | b |\n|------|---|\n| 1\\|2 | x |\n\n* note"


def test_the_tables_go_between_the_markers(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    fill(path, "new\n")
    assert path.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    path.write_text("no markers\n")
    with pytest.raises(ValueError, match="no markers"):
        fill(path, "new\n")
