"""Own blocks of an address space, as the kernel side has counted them."""

from __future__ import annotations

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.known_threads import thread_head
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.addresses import Space


def has_blocks(maps: Maps, space: Space, tid: int) -> bool:
    """Tell whether a space made any block; `tid`: its thread, whose counts join the space's when it ends."""
    key = np.zeros(1, records.KEY)
    key["pid"], key["generation"] = space
    raw = bpf.lookup_element(maps.fds["SPACE_TOTALS"], key.tobytes(), records.SPACE_TOTALS.itemsize)
    if raw is not None and np.frombuffer(raw, records.SPACE_TOTALS)[0]["made"]:
        return True
    thread = thread_head(maps, tid)
    return thread is not None and bool(thread["totals"]["made"])
