"""The beginning of a forked copy of refleak: it dies with refleak, so that no probe outlives the trace by it."""

from __future__ import annotations

import ctypes
import gc
import os
import signal

_PR_SET_PDEATHSIG = 1
_OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTSTP, signal.SIGWINCH)
_TO_END = (signal.SIGTERM, signal.SIGHUP)


def begin_copy(tracer: int) -> bool:
    """Called first in the copy. `tracer`: who forked it. Return False where that has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != tracer:
        return False
    gc.disable()  # a collection would write to all that is shared with the tracer
    for number in _OF_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    for number in _TO_END:
        signal.signal(number, signal.SIG_DFL)
    return True
