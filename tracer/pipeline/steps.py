"""Steps that take their time, told to who shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnStep = Callable[[str], None]
"""Is given what begins, in words, and an empty text when that is over."""


def unseen(_: str) -> None:
    """Show nothing."""


@contextmanager
def step(on_step: OnStep, what: str) -> Iterator[None]:
    """Tell that something goes on while the body runs."""
    on_step(what)
    try:
        yield
    finally:
        on_step("")
