"""The programs that walk interpreters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property

from tracer.errors import RefleakError


class InterpreterPrograms:
    """Load them when the first interpreter is met: the verifier takes 0.3 s over them, and few targets need them."""

    def __init__(self, load: Callable[[], Mapping[str, int]]) -> None:
        """`load` puts them in place, and returns their file descriptors by name."""
        self._load = load
        self.refused = ""
        """Why frames of interpreters cannot be walked, once that is known."""

    @cached_property
    def fds(self) -> Mapping[str, int]:
        """The programs; none where they were refused."""
        try:
            return self._load()
        except RefleakError as error:
            self.refused = str(error)
            return {}

    def close(self) -> None:
        for fd in self.__dict__.get("fds", {}).values():
            os.close(fd)
