"""Stacks in a line or two show the frame that is the user's own, wherever it stands."""

from __future__ import annotations

import pytest

from tracer.model.frames import Frame
from tracer.report.stack_lines import chain

STACK = tuple(Frame(name, "app") for name in ("a", "b", "c", "d", "e", "f", "main"))


@pytest.mark.parametrize(
    ("own", "names"),
    [
        (None, "a b c d ..."), (0, "a b c d ..."), (3, "a b c d ..."), (4, "a b c d e ..."), (5, "a b c ... f ..."),
        (6, "a b c ... main"), (9, "a b c d ..."),
    ],
)  # fmt: skip
def test_the_own_frame_is_shown(own: int | None, names: str) -> None:
    (line,) = chain(STACK, 200, own)
    assert line.replace(" [app]", "").replace(" < ", " ") == names


def test_a_short_stack_is_whole() -> None:
    assert chain(STACK[:2], 200, 1) == ["a [app] < b [app]"]
    assert chain((), 200, None) == ["(stack not kept)"]
