"""Work that is the kernel's, done in a thread while this one goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tracer.kernel.blocked_signals import block_signals

_SWITCH_SECONDS = 0.0005
"""So long may one thread of Python keep the other waiting: between system calls of a few milliseconds."""


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Do some work in a thread while the body runs; it is done behind the body. What it raises is raised then."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(1, "beside", block_signals) as worker:
            done = worker.submit(work)
            yield
        done.result()
    finally:
        sys.setswitchinterval(interval)
