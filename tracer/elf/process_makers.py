"""Programs that start processes, as far as the names of the functions tell that they refer to."""

from __future__ import annotations

import os

from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.errors import CannotRead, UnsuitableTarget

_PARTS = (
    "fork", "spawn", "popen", "clone", "exec", "process", "Process", "system", "syscall", "daemon", "wordexp", "dlopen",
)  # fmt: skip
"""Of such names, a library's too: g_spawn_async, boost::process, and what loads code that may do anything."""


def may_start_processes(path: str | os.PathLike[str]) -> bool:
    """Tell whether a program refers to anything by which it may start processes, or execute another program.

    A library that it calls may do so too, which is not seen; of what is no dynamic program nothing is known.
    """
    try:
        with Image.open(path) as image:
            if image.interpreter is None:
                return True
            return any(part in name for name in read_symbol_table(image).lacking() for part in _PARTS)
    except (CannotRead, UnsuitableTarget):
        return True
