"""Patterns with stars: what a plain matcher says, in a time that many stars do not multiply."""

from __future__ import annotations

import pytest
from hang_guard import no_hang
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis.glob import LONGEST, Glob
from tracer.analysis.suppression import Suppression, parse_suppressions
from tracer.errors import SpecInvalid
from tracer.model.findings import Leak
from tracer.model.frames import Frame


def plainly(pattern: str, text: str, one: bool) -> bool:
    """Tell whether the whole text matches: by the definition, character by character."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(plainly(pattern[1:], text[at:], one) for at in range(len(text) + 1))
    fits = bool(text) and (pattern[0] == text[0] or (one and pattern[0] == "?"))
    return fits and plainly(pattern[1:], text[1:], one)


PATTERNS, TEXTS = st.text("ab*?\n", max_size=8), st.text("ab?\n", max_size=8)


@given(PATTERNS, TEXTS, st.booleans(), st.booleans(), st.booleans())
def test_it_matches_as_a_plain_matcher_does(pattern: str, text: str, begins: bool, ends: bool, one: bool) -> None:
    whole = ("" if begins else "*") + pattern + ("" if ends else "*")
    assert Glob(pattern, begins, ends, one).matches(text) is plainly(whole, text, one)


LONG = "a" * 60_000


@pytest.mark.parametrize("piece", ["a*", "*a?*", "?*a*", "a" * 40 + "*"])
@pytest.mark.parametrize("kind", ["leak", "ref", "fun"])
def test_many_stars_take_no_longer_than_one(piece: str, kind: str) -> None:
    pattern = (piece * LONGEST)[: LONGEST - 2] + "*b"
    frame = Frame(LONG, LONG, LONG, None, LONG)
    leak = Leak("0" * 12, "reference", LONG, 1, "leaked", 1, 8, (frame,) * 3, True, "complete")
    if kind == "fun":
        (rule,) = parse_suppressions("{\nname\nMemcheck:Leak\nfun:" + pattern + "\n}\n", "s")
    else:
        (rule,) = parse_suppressions(f"{kind}:{pattern}\n", "s")
    with no_hang():
        assert not rule.matches(leak)


def test_the_longest_pattern_matches() -> None:
    frame = Frame(LONG + "b")
    leak = Leak("0" * 12, "allocation", "malloc", 1, "leaked", 1, 8, (frame,), True, "complete")
    assert Suppression("leak", "a*" * (LONGEST // 2 - 1) + "b$").matches(leak)


@pytest.mark.parametrize("text", ["leak:{}", "ref:{}", "{{\nname\nMemcheck:Leak\nfun:{}\n}}"])
def test_a_longer_pattern_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(SpecInvalid, match=r"^s:1: .*more than 4,096 characters$"):
        parse_suppressions(text.format("a" * (LONGEST + 1)), "s")
