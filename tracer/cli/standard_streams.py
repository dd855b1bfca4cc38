"""Standard input, output and error, where some of them are closed, full, or read by nobody."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def open_missing_streams() -> None:
    """Take the places of closed descriptors, so that no other file gets them; what is written there fails.

    A program that is exec'd finds them closed again.
    """
    while (fd := os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)) <= 2:
        pass
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def flush_streams() -> None:
    """Write what was printed. Raises OSError where it cannot be."""
    sys.stdout.flush()
    sys.stderr.flush()


def give_up_streams() -> None:
    """Let what could not be written go, so that Python does not try again at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            sink = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(sink, stream.fileno())
            os.close(sink)


def complain(what: str) -> None:
    """Say at once what goes wrong beside a trace that goes on."""
    print(f"refleak: {what}", file=sys.stderr, flush=True)


@contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """Let whatever writes to standard output in the body, children too, write to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
