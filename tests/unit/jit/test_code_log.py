"""Which code was where and when: the last entry before wins, and what leaves a choice has no name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.jit import code_log
from tracer.jit.code_log import NOTHING, CodeLog, GeneratedFunction


def function(name: str | None, after: int, until: int, start: int = 0x1000, size: int = 0x10) -> GeneratedFunction:
    return GeneratedFunction(start, start + size, name, after, until)


def found(log: CodeLog, address: int, after: int, until: int) -> str | tuple[str, ...] | None:
    answer = log.find(address, after, until)
    return answer.candidates or (answer.function.name if answer.function else None)


@pytest.fixture
def replaced() -> CodeLog:
    log = CodeLog()
    assert log.add(function("first", 0, 10)) == ()
    assert log.add(function("second", 20, 30, 0x1008)) == (function("first", 0, 10),)
    return log


@pytest.mark.parametrize(
    ("address", "after", "until", "expected"),
    [
        (0x1008, 10, 20, "first"),
        (0x1008, 5, 15, "first"),
        (0x1008, 30, 40, "second"),
        (0x1008, 10, 21, ("first", "second")),
        (0x1008, 29, 40, ("first", "second")),
        (0x1007, 29, 40, "first"),
        (0x1010, 0, 5, "second"),
        (0x1010, 29, 40, "second"),
        (0x1018, 29, 40, None),
        (0x0FFF, 29, 40, None),
    ],
)
def test_find(replaced: CodeLog, address: int, after: int, until: int, expected: str | tuple[str, ...] | None) -> None:
    assert found(replaced, address, after, until) == expected


def test_the_same_name_again_leaves_no_doubt() -> None:
    log = CodeLog()
    log.add(function("f", 0, 10))
    assert log.add(function("f", 20, 30)) == ()
    assert found(log, 0x1000, 25, 26) == "f"


def test_code_that_was_taken_away() -> None:
    log = CodeLog()
    log.add(function("f", 10, 10))
    assert log.add(function(None, 20, 20)) == (function("f", 10, 10),)
    assert [found(log, 0x1000, *times) for times in ((10, 15), (15, 25), (25, 30))] == ["f", ("f", "nothing"), None]


def test_a_range_over_several_pages() -> None:
    log = CodeLog()
    log.add(function("long", 0, 1, 0xFF0, 0x2020))
    assert [found(log, address, 1, 2) for address in (0xFEF, 0xFF0, 0x1800, 0x300F, 0x3010)] == [
        None, "long", "long", "long", None,
    ]  # fmt: skip
    assert log.add(function("short", 2, 3, 0x2000)) == (function("long", 0, 1, 0xFF0, 0x2020),)


def test_places() -> None:
    made = GeneratedFunction(0x1000, 0x1010, "f", 0, 0, ((0x1002, "a", 1), (0x1008, "b", 2)))
    assert [made.place_of(address) for address in (0x1001, 0x1002, 0x1007, 0x100F)] == [
        None, ("a", 1), ("a", 1), ("b", 2),
    ]  # fmt: skip


def test_too_many_functions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_log, "MOST_FUNCTIONS", 2)
    log = CodeLog()
    for start in (0x1000, 0x2000, 0x3000):
        log.add(function("f", 0, 1, start))
    assert (len(log), log.lost, log.find(0x3000, 1, 2)) == (2, 1, NOTHING)


ENTRIES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.sampled_from("abc")), max_size=12)


@given(ENTRIES, st.integers(0, 80), st.integers(0, 30), st.integers(0, 10))
def test_against_a_plain_reading(entries: list[tuple[int, int, str]], address: int, after: int, length: int) -> None:
    """Entry i came between 2i and 2i + 1. A frame may have run at any of its times: all of them must agree."""
    log = CodeLog()
    for i, (start, size, name) in enumerate(entries):
        log.add(GeneratedFunction(0xFE0 + start, 0xFE0 + start + size, name, 2 * i, 2 * i + 1))
    here = [(i, name) for i, (start, size, name) in enumerate(entries) if start <= address < start + size]
    names = set()
    for time in range(after, after + length + 1):
        surely = [name for i, name in here if 2 * i + 1 <= time]
        names |= set(surely[-1:]) | {name for i, name in here if 2 * i < time < 2 * i + 1}
    # What came wholly within the time may have been there too.
    names |= {name for i, name in here if 2 * i + 1 > after and 2 * i < after + length}
    answer = log.find(0xFE0 + address, after, after + length)
    if names:
        assert set(answer.candidates or (answer.function.name if answer.function else "",)) == names
    else:
        assert (answer.function.name if answer.function else None) == next((name for _, name in here), None)
