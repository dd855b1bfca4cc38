"""The limit of open files: each binary is one, and so is each link of a probe to a process."""

from __future__ import annotations

import errno
import resource
from contextlib import suppress

from tracer.errors import TooFewFiles

EXHAUSTED = (errno.EMFILE, errno.ENFILE)
LEAST = 512
"""A trace of a small program has some 150 open, and the links of ended processes wait for a quiet moment to be closed:
to close them in a hurry would wait for whoever is held."""

_given: list[tuple[int, int]] = []


def raise_limit() -> None:
    """Take all that may be had; raises TooFewFiles where that is not enough for any trace."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < LEAST:
        raise TooFewFiles(f"only {hard} files may be open (the hard limit), tracing needs {LEAST}")
    if not _given:
        _given.append((soft, hard))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore_limit() -> None:
    """Give a target the limit that refleak was started with."""
    if _given:
        resource.setrlimit(resource.RLIMIT_NOFILE, _given[0])
