"""What grows, what is bounded, what happened once; and where blocks were freed. Numbers: targets/trends.c."""

from __future__ import annotations

from typing import Any

from conftest import Refleak
from traced_report import Run, functions

ROUND_NS = 50_000_000


def traced(refleak: Refleak) -> Run:
    run = refleak(target=("trends",))
    run.check_whole()
    return run


def one(run: Run, function: str) -> dict[str, Any]:
    (leak,) = run.below(function)
    return leak


def freed_by(leak: dict[str, Any]) -> dict[str | None, int]:
    return {call["stack"][0]["function"]: call["count"] for call in leak["freed_at"]}


def test_a_third_of_what_is_made_stays_and_grows(refleak: Refleak) -> None:
    leak = one(traced(refleak), "grow")
    trend = leak["trend"]
    assert (leak["count"], leak["made"], leak["freed"]) == (60, 180, 120)
    assert trend["word"] == "growing"
    # 54 or so of 60 rounds come after the first tenth, at 1200 a minute; slower where the machine is
    assert 200 < trend["count_per_minute"] < 1400
    assert abs(trend["bytes_per_minute"] - trend["count_per_minute"] * 53) <= 1
    assert trend["lives"]["count"] == 120
    assert 0 < trend["lives"]["min_ns"] <= trend["lives"]["median_ns"] <= trend["lives"]["max_ns"] < ROUND_NS
    assert trend["ages"]["count"] == 60
    # the clock of the rounds starts before the first block is made
    assert trend["ages"]["min_ns"] >= ROUND_NS * 4 // 10 and trend["ages"]["max_ns"] >= 59 * ROUND_NS
    assert trend["peak"] == 62  # the third of the last round, before two of them go


def test_a_queue_is_bounded(refleak: Refleak) -> None:
    leak = one(traced(refleak), "push")
    trend = leak["trend"]
    assert (leak["count"], leak["made"], leak["freed"]) == (8, 240, 232)
    assert (trend["word"], trend["peak"]) == ("bounded", 8)
    assert trend["reason"].startswith("never more than 8 at once, while 232 of 240 were made;")
    assert trend["count_per_minute"] is None
    assert trend["lives"]["min_ns"] >= ROUND_NS  # two rounds, but a late one may be followed by a short one


def test_what_happened_once(refleak: Refleak) -> None:
    leak = one(traced(refleak), "one_off")
    assert (leak["count"], leak["made"], leak["freed"], leak["freed_at"]) == (7, 7, 0, [])
    assert (leak["trend"]["word"], leak["trend"]["lives"]) == ("one-off", None)


def test_objects_grow_too(refleak: Refleak) -> None:
    (leak,) = (leak for leak in traced(refleak).leaks if leak["kind"] == "reference")
    assert (leak["type"], leak["count"], leak["trend"]["word"]) == ("thing", 60, "growing")
    assert (leak["trend"]["lives"]["count"], leak["trend"]["bytes_per_minute"]) == (60, None)
    assert leak["trend"]["lives"]["median_ns"] is not None


def test_frees_are_found_where_they_were(refleak: Refleak) -> None:
    run = traced(refleak)
    freed = freed_by(one(run, "grow"))
    assert set(freed) == {"drop_here", "drop_there"}
    # the first 16 are all looked at, and then ever fewer: of 120 in turns, 16 (1 + ln(120 / 16)) or 48 are expected
    assert freed["drop_here"] >= 8 and freed["drop_there"] >= 8
    assert 20 <= sum(freed.values()) <= 100
    (queue,) = one(run, "push")["freed_at"]
    assert functions(queue["stack"])[:3] == ["drop_here", "push", "main"]
    assert 16 <= queue["count"] < 232


def test_all_of_few_frees_are_looked_at(refleak: Refleak) -> None:
    leak = one(traced(refleak), "few")
    assert (leak["count"], leak["made"], leak["freed"], freed_by(leak)) == (2, 5, 3, {"drop_here": 3})
    assert leak["trend"]["word"] == "one-off"
