"""Values that calls pass, as texts."""

from __future__ import annotations

import pytest

from tracer.model.passed import (
    NOWHERE,
    UNKNOWN,
    Passed,
    at_frame,
    beside_code,
    container_of,
    distance_of,
    element_of,
    is_part_of,
    kept_at,
    one_of,
    shifted,
    within,
    without_shift,
    word_at,
)


def test_addresses_and_words() -> None:
    assert shifted("p0", 88) == "p0+88"
    assert shifted("p0+88", -88) == "p0"
    assert word_at("p0+120", 8) == "p0@128"
    assert word_at(shifted("p0@128", 8), 0) == "p0@128@8"
    assert shifted(beside_code(0x7F0010), -16) == beside_code(0x7F0000)
    assert word_at(beside_code(0x10), 0) == "g10@0"
    assert word_at(at_frame(0x1A9E70, -64), 0) == "s1a9e70@-64"
    assert (distance_of("?@40-40"), without_shift("?@40-40")) == (-40, "?@40")
    assert without_shift(at_frame(0x10, -8)) == "s10-8"


def test_elements_of_containers() -> None:
    assert element_of("p0@56") == "p0@56*" and container_of("p0@56*") == "p0@56" and container_of("p0@56") is None
    of_none = ("p0", "?", "r12", "g7f00", "p0@0", "s10@-8", "p0@8/p0@16", NOWHERE)
    assert [element_of(container) for container in of_none] == [NOWHERE] * 8
    assert element_of("g7f00@0") == "g7f00@0*" and element_of("?+88") == "?+88*"
    assert [kept_at(one) for one in ("p0@56", "p0@56@0", "p0+40", "r12@8@-16", "g7f00", "p0@0")] == [
        56, 56, 40, -16, None, None,
    ]  # fmt: skip
    assert within("p0@56*", ["p1+8"]) == "p1@64*" and within("p0+8*", ["?"]) == "?+8*"
    assert within("p0@8" + "*" * 3000, ["p1"]) == "p1@8*" and within("*" * 3000, ["p1"]) == NOWHERE
    assert is_part_of("r12@8*", "r12") and is_part_of("p0+440*", "p0") and not is_part_of("r123@8*", "r12")
    assert within("p2@8*", ["p1"]) == "?@8*" and within("p0@8*", ["s10"]) == NOWHERE
    assert (distance_of("p0+40*"), without_shift("p0+40*")) == (0, "p0+40*")
    assert Passed.read(Passed(("p0", "?", "?"), (("p1@56*", "<p0+8*"), (), (), ())).text()) == Passed(
        ("p0", "?", "?"), (("p1@56*", "<p0+8*"), (), (), ())
    )


def test_what_has_no_text_stays_without() -> None:
    assert shifted(NOWHERE, 8) == word_at(NOWHERE, 8) == NOWHERE
    assert word_at("r10/r20", 8) == "?@8"


def test_as_who_calls_says_it() -> None:
    assert within("p0@128", ["r1234", "?"]) == "r1234@128"
    assert within("p1@0", ["?", "p0+128"]) == "p0@128"
    assert within("p0@8-8/p1", ["p0", "g10"]) == "g10/p0@8-8"
    assert within("p2", ["p0"]) == UNKNOWN
    assert within("r10@8", ["p0"]) == "r10@8"


@pytest.mark.parametrize(
    ("values", "one"),
    [({"r1"}, "r1"), ({"r2", "r1"}, "r1/r2"), ({"r1", UNKNOWN}, UNKNOWN), (set(), UNKNOWN), (set("abcde"), UNKNOWN)],
)
def test_one_of_several(values: set[str], one: str) -> None:
    assert one_of(values) == one


@pytest.mark.parametrize(
    "passed", [Passed(("p1+88", "?", "p2"), (("p1@0", "~"), (), (), ("r17@80", "^"))), Passed(("?",) * 3, ((),) * 4)]
)
def test_read_as_written(passed: Passed) -> None:
    assert Passed.read(passed.text()) == passed


@pytest.mark.parametrize("text", ["", "?", "? ? ?", "? ? ? ?", "? ? ? >p0@" + "8" * 5000])
def test_what_is_none_is_not_read(text: str) -> None:
    assert Passed.read(text) is None
