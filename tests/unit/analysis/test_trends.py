"""Growing, bounded, one-off: each word where its evidence stands, none a step before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made import DSO, SECOND, Code, blocks, mapped, objects, process, records, snapshot

from tracer.analysis import analyse
from tracer.analysis.births import Births, births
from tracer.analysis.trends import trend
from tracer.analysis.turnover import Turnover, block_turnover
from tracer.model.findings import Leak
from tracer.model.records import FREED_RECORD, LIFE_SHIFT, TOTALS_RECORD
from tracer.model.snapshot import Snapshot
from tracer.model.statistics import LIFE_BIN, LIFETIME, BalancedStatistics
from tracer.model.trends import Durations

STEADY = [i * SECOND for i in range(60)]


def born(*times: float, end: float = 60, start: float = 0) -> Births:
    ns = np.array(sorted(int(time * SECOND) for time in times))
    (one,) = births(ns, np.full(len(ns), 16), np.array([0, len(ns)]), [(int(start * SECOND), int(end * SECOND))])
    return one


def lived(made: int, freed: int, longest: float = 1, **more: object) -> Turnover:
    most = int(longest * SECOND)
    bins = tuple(freed if i == 1 else 0 for i in range(32))
    return replace(Turnover(made, freed, Durations(freed, 1, None, most), 12, made, bins), **more)  # type: ignore[arg-type]


def word(born_: Births, turnover: Turnover | None = None) -> str | None:
    return trend(born_, turnover).word


def test_births_are_counted_entry_by_entry() -> None:
    times = np.array([10, 30, 50, 7, 100]) * SECOND
    one, other = births(
        times, np.array([2, 4, 1, 8, 16]), np.array([0, 3, 5]), [(0, 110 * SECOND), (5 * SECOND, 60 * SECOND)]
    )
    assert (one.count, one.first_ns, one.median_ns, one.last_ns) == (3, 10 * SECOND, 30 * SECOND, 50 * SECOND)
    assert one.tenths == (1, 0, 1, 0, 1, 0, 0, 0, 0, 0)
    assert one.late_bytes == 5
    assert one.ages == Durations(3, 60 * SECOND, 80 * SECOND, 100 * SECOND)
    # born after the end that was noted: the end is moved, no age is negative
    assert (other.count, other.tenths, other.late_bytes) == (2, (1, 0, 0, 0, 0, 0, 0, 0, 0, 1), 16)
    assert other.ages == Durations(2, 0, 93 * SECOND, 93 * SECOND)


def test_what_comes_all_the_time_and_stays_grows() -> None:
    found = trend(born(*range(60)), Turnover(60, 0))
    assert (found.word, found.reason) == ("growing", "some of each tenth of 60.0 s stayed")
    assert found.growth is not None
    assert found.growth.count_per_minute == pytest.approx(60)
    assert found.growth.bytes_per_minute == pytest.approx(960)
    assert trend(born(*range(60)), None, has_size=False).growth is not None


def test_a_burst_at_the_start_does_not_add_to_the_growth() -> None:
    found = trend(born(*[0.1] * 1000, *range(60)), None)
    assert found.word == "growing"
    assert found.growth is not None
    assert 59 < found.growth.count_per_minute < 61


@pytest.mark.parametrize(
    ("births_", "turnover"),
    [
        (born(*range(0, 60, 6)), None),  # nine after the first tenth: too few
        (born(*range(16, 60)), None),  # began late
        (born(*range(0, 40)), None),  # ended early: five of nine tenths
        (born(*(i / 31 for i in range(60)), end=1.99), None),  # traced for too short
        (born(*range(60)), lived(1000, 940, longest=50, bins=tuple(940 if i == 25 else 0 for i in range(32)))),
        (born(*range(60)), lived(1000, 940, bins=())),  # how long the freed lived is not known
    ],
)
def test_no_word_of_growth(births_: Births, turnover: Turnover | None) -> None:
    assert word(births_, turnover) is None


def test_what_outlives_nearly_all_of_the_freed_grows() -> None:
    assert word(born(*range(60)), lived(1000, 940)) == "growing"


@pytest.mark.parametrize(
    ("births_", "expected"),
    [
        (born(0.5), "one-off"),
        (born(0.5, 1, 5), "one-off"),
        (born(0.5, 1, 7), None),  # over more than a tenth of the time
        (born(30), "one-off"),
        (born(31), None),  # less than half of the time has passed since
        (born(0.1, end=1.9), None),  # traced for too short
        (born(10.1, start=10, end=11.9), None),  # the process was, at least
    ],
)
def test_one_off(births_: Births, expected: str | None) -> None:
    assert word(births_) == expected


def test_the_reasons_of_one_off() -> None:
    assert trend(born(0.5), None).reason == "made once, and none that stayed in the 59.5 s since"
    assert trend(born(0.5, 2), None).reason == "all made within 1.5 s, and none that stayed in the 58.0 s since"


def test_bounded() -> None:
    young = born(59.2, 59.9)
    found = trend(young, lived(1000, 998, since_risen=700))
    assert found.word == "bounded"
    assert found.reason == (
        "never more than 12 at once, while 700 of 1,000 were made; no survivor is older than freed ones became"
    )
    assert found.growth is None
    assert word(young, lived(1000, 998, since_risen=499)) is None  # rose in the latter half
    assert word(young, lived(19, 17, since_risen=19)) is None  # too few
    assert word(young, lived(1000, 499, since_risen=700)) is None  # most stayed
    assert word(young, lived(1000, 998, since_risen=700, peak=None)) is None
    assert word(born(58.9, 59.9), lived(1000, 998, since_risen=700)) is None  # one is older than any freed became
    assert word(born(40, 44), lived(1000, 998, longest=30, since_risen=700)) is None  # nothing is made any more


def test_the_median_is_taken_from_the_bins() -> None:
    code = Code()
    code.stack(1)
    lives = {"life_min_ns": 5000, "life_max_ns": 2 * SECOND}
    totals = {"stack": 1, "made": 40, "freed": 38, "peak": 3, "risen": 9, **lives}
    bins = [{"stack": 1, "bin": 1, "count": 10}, {"stack": 1, "bin": 3, "count": 28}]
    snap = snapshot(code, totals=records(TOTALS_RECORD, [totals]), life_bins=records(LIFE_BIN, bins))
    turnover = block_turnover(snap).of((1,))
    assert turnover is not None
    # the 19th of 38 is the 9th of the 28 in bin 3, which goes from 16,384 to 32,768 ns
    assert turnover.lives == Durations(38, 5000, int(16384 + 16384 * 9 / 28), 2 * SECOND)
    assert 1 << LIFE_SHIFT + 2 == 16384
    assert (turnover.made, turnover.freed, turnover.peak, turnover.since_risen) == (40, 38, 3, 31)
    short = block_turnover(replace(snap, life_bins=snap.life_bins[:1])).of((1,))
    assert short is not None and short.lives == Durations(38, 5000, None, 2 * SECOND)
    assert block_turnover(snap).of((1, 2)) is None


def test_the_median_lies_between_the_shortest_and_the_longest() -> None:
    book = {"stack": 1, "made": 1, "freed": 1, "life_min_ns": 5001, "life_max_ns": 5001}
    for number in (1, 31):
        bins = records(LIFE_BIN, [{"stack": 1, "bin": number, "count": 1}])
        turnover = block_turnover(snapshot(totals=records(TOTALS_RECORD, [book]), life_bins=bins)).of((1,))
        assert turnover is not None and turnover.lives == Durations(1, 5001, 5001, 5001)


def queue() -> tuple[Snapshot, Code]:
    """Two stacks that a report merges: together 45 made and 43 freed, two left."""
    code = Code()
    malloc, main = code.frame("malloc", binary=2), code.frame("main", "a.c:9")
    one = code.stack(1, malloc, code.frame("push", "q.c:5"), main)
    other = code.stack(2, malloc, code.frame("push", "q.c:5"), main)
    pop = code.stack(3, code.frame("map__delete", "map.c:203"), main)
    clear = code.stack(4, code.frame("clear", "map.c:210"), main)
    totals = [
        {"stack": one, "made": 40, "freed": 39, "life_min_ns": 10, "life_max_ns": 4 * SECOND, "peak": 3, "risen": 4},
        {"stack": other, "made": 5, "freed": 4, "life_min_ns": 5, "life_max_ns": 90, "peak": 2, "risen": 5},
        {"stack": pop}, {"stack": clear},
    ]
    return snapshot(
        code,
        allocations=blocks(
            {"address": 16, "size": 24, "time_ns": 58 * SECOND, "stack": one},
            {"address": 48, "size": 24, "time_ns": 60 * SECOND, "stack": other},
        ),
        totals=records(TOTALS_RECORD, totals),
        life_bins=records(LIFE_BIN, [{"stack": one, "bin": 2, "count": 39}, {"stack": other, "count": 4}]),
        free_sites=records(
            FREED_RECORD,
            [
                {"made": one, "freed": pop, "count": 15}, {"made": one, "freed": clear, "count": 1},
                {"made": other, "freed": pop, "count": 4}, {"made": 77, "freed": pop, "count": 9},
            ],
        ),
    ), code  # fmt: skip


def entry(snap: Snapshot, code: Code) -> Leak:
    (leak,) = analyse(snap, code.symbols).leaks
    return leak


def test_an_entry_sums_the_stacks_that_it_merges() -> None:
    leak = entry(*queue())
    assert (leak.count, leak.made, leak.freed) == (2, 45, 43)
    assert leak.trend is not None
    assert leak.trend.lives is not None
    assert (leak.trend.lives.count, leak.trend.lives.min_ns, leak.trend.lives.max_ns) == (43, 5, 4 * SECOND)
    assert leak.trend.peak == 5
    assert leak.trend.ages == Durations(2, SECOND, 3 * SECOND, 3 * SECOND)
    assert leak.trend.word == "bounded"
    assert [(call.stack[0].function, call.count) for call in leak.freed_at] == [("map__delete", 19), ("clear", 1)]


def test_totals_of_several_processes_are_not_taken_for_one_s() -> None:
    snap, code = queue()
    snap = replace(snap, processes=(process(), process(813)), totals=snap.totals.copy())
    snap.totals["made"][0] += 5
    leak = entry(snap, code)
    assert (leak.made, leak.freed) == (None, None)
    assert leak.trend is not None
    assert (leak.trend.word, leak.trend.peak) == (None, None)
    assert leak.trend.lives is not None and leak.trend.lives.count == 43


def test_objects_are_judged_by_their_own_kind() -> None:
    code = Code()
    new = code.stack(5, code.frame("dso__new", "dso.c:88"))
    alive = objects(*({"address": 64 * i, "serial": i, "time_ns": t} for i, t in enumerate(STEADY)), stack=new)
    lifetimes = records(LIFETIME, [{"type": DSO, "create_stack": new, "count": 7, "min_ns": 40, "max_ns": 9000}])
    bins = records(LIFE_BIN, [{"count": 4}, {"bin": 1, "count": 3}], type=DSO, stack=new)
    snap = snapshot(code, objects=alive, balanced=BalancedStatistics(lifetimes=lifetimes, lives=bins))
    leak = entry(snap, code)
    assert leak.trend is not None
    assert (leak.trend.word, leak.trend.peak) == ("growing", None)
    assert leak.trend.lives == Durations(7, 40, 4096 * 7 // 8, 9000)
    assert leak.trend.growth is not None and leak.trend.growth.bytes_per_minute is None


def test_mappings_have_a_word_too() -> None:
    code = Code()
    stack = code.stack(9, code.frame("arena__map", "arena.c:12"))
    arena = mapped(*({"start": 4096 * i, "length": 4096, "time_ns": t} for i, t in enumerate(STEADY)), stack=stack)
    leak = entry(snapshot(code, mapped=arena), code)
    assert leak.trend is not None and leak.trend.word == "growing"
    assert (leak.trend.lives, leak.freed_at) == (None, ())
