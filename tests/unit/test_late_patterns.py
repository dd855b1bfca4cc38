"""Regular expressions that are compiled late are those that they stand for, and all of refleak's can be compiled."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tracer.late_patterns import LatePattern, late_pattern

ROOT = Path(__file__).parents[2]


def patterns() -> Iterator[tuple[str, LatePattern]]:
    for path in sorted((ROOT / "tracer").rglob("*.py")):
        if "late_pattern(" in path.read_text() and path.stem != "late_patterns":
            module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            yield from ((f"{module.__name__}.{name}", value) for name, value in vars(module).items()
                        if isinstance(value, LatePattern))  # fmt: skip


def test_all_can_be_compiled() -> None:
    found = dict(patterns())
    assert len(found) > 100
    for name, pattern in found.items():
        assert isinstance(pattern.pattern, str | bytes), name


def test_is_as_the_compiled_one() -> None:
    late, made = late_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)", re.IGNORECASE)
    for _ in range(2):
        assert late.fullmatch("AbC") and not late.fullmatch("a1")
        assert late.sub("x", "ab 1") == made.sub("x", "ab 1") and late.findall("a B") == made.findall("a B")
    assert (late.pattern, late.flags, late.groupindex) == (made.pattern, made.flags, made.groupindex)
    with pytest.raises(AttributeError):
        late.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_copies_and_pickles() -> None:
    late = late_pattern("a+")
    for one in (copy.copy(late), pickle.loads(pickle.dumps(late)), copy.deepcopy(late)):
        assert one.fullmatch("aa") and not one.fullmatch("b")


def test_nothing_is_compiled_before() -> None:
    wrong = late_pattern("(")
    with pytest.raises(re.error):
        wrong.match("")
