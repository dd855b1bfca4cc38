"""Writes return addresses to the stacks of threads that are held while they unwind."""

from __future__ import annotations

import numpy as np

from tracer.capture import kernel
from tracer.capture.maps import Maps
from tracer.model import records
from tracer.procfs.process import write_words


class StackWriter:
    """Does for bpf/unwinders.bpf.c what a thread may not do for itself."""

    def __init__(self, maps: Maps) -> None:
        self._words = maps.fds["STACK_WORDS"]
        self.failed = 0

    def write(self, control: np.void) -> None:
        """Write what the held thread of this record asks for."""
        key = int(control["tid"]).to_bytes(4, "little")
        raw = kernel.lookup_element(self._words, key, records.STACK_WORDS.itemsize)
        asked = np.frombuffer(raw, records.STACK_WORDS)[0] if raw is not None else None
        words = [] if asked is None else asked["word"][: int(asked["count"])].tolist()
        if not words or not write_words(int(control["pid"]), words):
            self.failed += 1
