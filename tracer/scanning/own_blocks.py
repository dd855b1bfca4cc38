"""Own blocks of an address space, as the kernel side has counted them."""

from __future__ import annotations

from tracer.kernel.known_spaces import space_totals
from tracer.kernel.known_threads import thread_head
from tracer.kernel.maps import Maps
from tracer.model.addresses import Space


def has_blocks(maps: Maps, space: Space, tid: int) -> bool:
    """Tell whether a space made any block; `tid`: its thread, whose counts join the space's when it ends."""
    totals = space_totals(maps, space)
    if totals is not None and totals["made"]:
        return True
    thread = thread_head(maps, tid)
    return thread is not None and bool(thread["totals"]["made"])
