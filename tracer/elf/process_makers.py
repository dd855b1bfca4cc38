"""Programs that start processes, as far as the names of the functions tell that they refer to."""

from __future__ import annotations

import os

from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.errors import CannotRead, UnsuitableTarget
from tracer.late_patterns import late_pattern

_MAKERS = late_pattern(
    r"_*(popen|system|syscall|clone\d?|daemon|wordexp|f?exec[lv]\w*)|.*(fork|spawn|[Ss]ubprocess|QProcess).*"
)
"""Of libc, and of libraries that have it in their names: g_spawn_async, QProcess::start."""


def may_start_processes(path: str | os.PathLike[str]) -> bool:
    """Tell whether a program refers to anything by which it may start processes, or execute another program.

    A library that it calls may do so too, which is not seen; of what is no dynamic program nothing is known.
    """
    try:
        with Image.open(path) as image:
            if image.interpreter is None:
                return True
            return any(_MAKERS.fullmatch(name) for name in read_symbol_table(image).lacking())
    except (CannotRead, UnsuitableTarget):
        return True
