"""Wakes of a trace's loop, before its tick is over."""

from __future__ import annotations

import select
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from os import close, pidfd_open
from types import TracebackType


class Wakes(AbstractContextManager["Wakes"]):
    """A record of the kernel side that somebody waits for, and the ends of the processes that are traced."""

    def __init__(self, control: int, pids: Iterable[int]) -> None:
        """`control`: the ring of such records; `pids`: who was launched or attached to."""
        self._opened = ExitStack()
        self._poll = select.epoll()
        self._opened.callback(self._poll.close)
        self._poll.register(control, select.EPOLLIN)
        for pid in pids:
            with suppress(OSError):  # it has ended, which the first turn finds out
                end = pidfd_open(pid)
                self._opened.callback(close, end)
                self._poll.register(end, select.EPOLLIN | select.EPOLLONESHOT)  # its children may live on

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether something woke."""
        return bool(self._poll.poll(seconds))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._opened.close()
