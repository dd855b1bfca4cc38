"""Take breakpoints away at once, while somebody may be held."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_PATIENCE_SECONDS = 3.0
"""Where runs that have ended close their events, a close waits for theirs. Who goes on before the breakpoints are gone
may find bytes changed where a file was rewritten; a hold lasts for 5 s."""
_STEP_SECONDS = 0.0005
_TAKES_AWAY = ("register_for_each_vma", "unregister_nosync", "percpu_down_write", "register_rwsem")
_WAITS_FOR_READERS = ("rcu", "srcu")


class Closing(threading.Thread):
    """A close of one link.

    The kernel takes its breakpoints away, and then waits until no program of any probe runs: none of those either that
    hold a thread for this process. So nobody who holds one may wait for the end of a close.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(name="remove")
        self._fd = fd

    def run(self) -> None:
        with suppress(OSError):
            os.close(self._fd)

    @property
    def is_effective(self) -> bool:
        """Whether the breakpoints are gone."""
        return not self.is_alive() or waits_for_readers(self.native_id)


def waits_for_readers(thread: int | None) -> bool:
    """Tell whether a thread of this process that closes a link only waits for the kernel's readers still."""
    try:
        stack = Path(f"/proc/self/task/{thread}/stack").read_text()
    except OSError:
        return False
    return any(word in stack for word in _WAITS_FOR_READERS) and not any(word in stack for word in _TAKES_AWAY)


def remove_breakpoints(fds: Sequence[int], others: Iterable[int] = ()) -> None:
    """Close links, and return when their breakpoints are gone, and those of links that the threads `others` close."""
    closings = [Closing(fd) for fd in fds]
    for closing in closings:
        closing.start()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    left, threads = closings, list(others)
    while (left or threads) and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)
        left = [closing for closing in left if not closing.is_effective]
        threads = [thread for thread in threads if not waits_for_readers(thread)]
