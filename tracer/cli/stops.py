"""Stops by the terminal (Ctrl-Z): the target stops first, since refleak may be holding it."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from tracer.kernel.blocked_signals import block_signals
from tracer.procfs.process import is_alive, is_stopped

_PATIENCE_SECONDS = 2.0
"""So long may the target take to stop: it may have something to do first, as editors have."""
_TURN_SECONDS = 0.01
_REST_SECONDS = 0.1
"""For those that it has started, of which refleak may hold some too."""


def stop_after(pid: int) -> None:
    """Have refleak stop at Ctrl-Z once a target has stopped, which goes on being traced until then. One that does not
    stop, as it ignores that or nobody could continue it, is traced on. Where refleak was told to ignore Ctrl-Z it does.
    """
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:
        return
    under_way = threading.Lock()

    def asked(number: int, _frame: FrameType | None) -> None:
        if not is_alive(pid):
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, asked)
        elif under_way.acquire(blocking=False):
            threading.Thread(target=_follow, args=(pid, under_way), daemon=True).start()

    signal.signal(signal.SIGTSTP, asked)


def _follow(pid: int, under_way: threading.Lock) -> None:
    block_signals()
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end and is_alive(pid) and not is_stopped(pid):
        time.sleep(_TURN_SECONDS)
    if is_stopped(pid):
        time.sleep(_REST_SECONDS)
        os.kill(os.getpid(), signal.SIGSTOP)
    under_way.release()
