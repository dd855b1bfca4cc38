"""Programs that few targets need, loaded when the first such target is met."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property

from tracer.errors import RefleakError


class LaterPrograms:
    """The programs are in the kernel before `fds` is there: whoever attaches one of them asks for it first."""

    def __init__(self, load: Callable[[], Mapping[str, int]]) -> None:
        """`load` puts them in place, and returns their file descriptors by name."""
        self._load = load

    @cached_property
    def fds(self) -> Mapping[str, int]:
        """The programs; raises ProgramRefused."""
        return self._load()

    @property
    def is_loaded(self) -> bool:
        return "fds" in self.__dict__

    def close(self) -> None:
        if self.is_loaded:
            for fd in self.fds.values():
                os.close(fd)


class InterpreterPrograms(LaterPrograms):
    """What walks interpreters: without it, the rest works."""

    refused = ""
    """Why frames of interpreters cannot be walked, once that is known."""

    def __init__(self, load: Callable[[], Mapping[str, int]]) -> None:
        super().__init__(load)

    @cached_property
    def fds(self) -> Mapping[str, int]:
        """The programs; none where they were refused."""
        try:
            return self._load()
        except RefleakError as error:
            self.refused = str(error)
            return {}
