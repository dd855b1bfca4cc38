"""Processes and address spaces as the kernel side has them."""

from __future__ import annotations

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.addresses import Space


def known_process(maps: Maps, pid: int) -> np.void | None:
    """Return the PROCESS of a pid, None where none is known."""
    raw = bpf.lookup_element(maps.fds["PROCESSES"], pid.to_bytes(4, "little"), records.PROCESS.itemsize)
    return None if raw is None else np.frombuffer(raw, records.PROCESS)[0]


def space_totals(maps: Maps, space: Space) -> np.void | None:
    """Return the SPACE_TOTALS of an address space, without what its living threads are still to add; None where nothing
    was added."""
    key = np.zeros(1, records.KEY)
    key["pid"], key["generation"] = space
    raw = bpf.lookup_element(maps.fds["SPACE_TOTALS"], key.tobytes(), records.SPACE_TOTALS.itemsize)
    return None if raw is None else np.frombuffer(raw, records.SPACE_TOTALS)[0]
