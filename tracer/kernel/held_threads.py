"""Threads that the kernel side holds, until they are released or have waited too long."""

from __future__ import annotations

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.kernel_records import HOLD
from tracer.kernel.maps import Maps


def is_held(maps: Maps, control: np.void) -> bool:
    """Tell whether the thread that told of itself by a record of the control ring is still held there.

    Not yet, if it only begins to wait: it tells of itself before that.
    """
    kept = bpf.lookup_element(maps.fds["HOLDS"], int(control["tid"]).to_bytes(4, "little"), HOLD.itemsize)
    return kept is not None and bool(np.frombuffer(kept, HOLD)[0]["ticket"] == control["ticket"])
