"""Threads as the kernel side has them: what it knows of one, and whether it holds it."""

from __future__ import annotations

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.kernel_records import HOLD
from tracer.kernel.maps import Maps, thread_value


def is_held(maps: Maps, control: np.void) -> bool:
    """Tell whether the thread that told of itself by a record of the control ring is still held there.

    Not yet, if it only begins to wait: it tells of itself before that.
    """
    return stands(maps, int(control["tid"]), int(control["ticket"]))


def stands(maps: Maps, tid: int, ticket: int) -> bool:
    """Tell whether a thread is held and waits for this ticket."""
    kept = bpf.lookup_element(maps.fds["HOLDS"], tid.to_bytes(4, "little"), HOLD.itemsize)
    return kept is not None and int(np.frombuffer(kept, HOLD)[0]["ticket"]) == ticket


def thread_head(maps: Maps, tid: int) -> np.void | None:
    """Return the THREAD_HEAD of a thread, None where it has done nothing that is probed."""
    value = thread_value()
    raw = bpf.lookup_element(maps.fds["THREADS"], tid.to_bytes(4, "little"), value.itemsize)
    return None if raw is None else np.frombuffer(raw, value, 1)[0]["head"]
