"""The programs that walk interpreters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tracer.errors import RefleakError


class GuestPrograms:
    """Loads them aside: the verifier takes 0.3 s over them, and most targets never need them."""

    def __init__(self, load: Callable[[], Mapping[str, int]]) -> None:
        """`load` puts them in place, and returns their file descriptors by name; runs in a thread of its own."""
        self._load = load
        self._fds: Mapping[str, int] = {}
        self.refused = ""
        """Why frames of interpreters cannot be walked, once that is known."""
        self._thread = threading.Thread(target=self._run, name="guest programs", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._fds = self._load()
        except RefleakError as error:
            self.refused = str(error)

    def wait(self) -> Mapping[str, int]:
        """Return the programs, as soon as they are there; none where they were refused."""
        self._thread.join()
        return self._fds
