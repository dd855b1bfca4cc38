"""Writes return addresses to the stacks of threads that are held while they unwind."""

from __future__ import annotations

import os
import select
import threading

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.kernel.releases import SOON_SECONDS, Releases
from tracer.kernel.rings import Ring
from tracer.model import records
from tracer.procfs.process import write_words


class StackWriter:
    """Does for bpf/unwinders.bpf.c what a thread may not do for itself.

    In a thread of its own: the target waits, and may unwind until the last probe is gone, while nothing else is read
    any more.
    """

    def __init__(self, maps: Maps, releases: Releases) -> None:
        self._words = maps.fds["STACK_WORDS"]
        self._releases = releases
        self._ring = Ring(maps.fds["STACK_REQUESTS"], maps.entries["STACK_REQUESTS"])
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="stack writer", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with select.epoll() as poll:
            poll.register(self._ring.fd, select.EPOLLIN)
            poll.register(self._end, select.EPOLLIN)
            while self._end not in dict(poll.poll(SOON_SECONDS if self._releases.has_waiting else None)):
                self._releases.again()
                for blob in self._ring.read_blobs():
                    self._write(np.frombuffer(blob, records.STACK_REQUEST, 1)[0])

    def _write(self, request: np.void) -> None:
        """Write what a thread asks for, and let it go on, whatever happens."""
        tid = int(request["tid"])
        try:
            raw = bpf.lookup_element(self._words, tid.to_bytes(4, "little"), records.STACK_WORDS.itemsize)
            if raw is not None:
                asked = np.frombuffer(raw, records.STACK_WORDS)[0]
                write_words(int(request["pid"]), asked["word"][: int(asked["count"])].tolist())
        finally:
            self._releases.release(tid, int(request["ticket"]))

    def close(self) -> None:
        """End the thread, once nothing can ask for it any more."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        os.close(self._end)
        self._ring.close()
