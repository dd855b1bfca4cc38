"""A hang is a failure."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HANG_SECONDS = 30


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail instead of hanging: what is tested takes a second, and took minutes."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
