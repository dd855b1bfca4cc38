"""A library that a package loads by ctypes, loaded before it does, while other threads of Python run on."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_SYSTEMS = (f"/usr/lib/{getattr(sys.implementation, '_multiarch', '')}", "/usr/lib64", "/usr/lib")
"""Folders that the dynamic loader looks into."""
_MODE = os.RTLD_NOW | os.RTLD_DEEPBIND


def load_early(package: str, sonames: Sequence[str]) -> None:
    """Load the first of some names that is in the package's folder `lib`, else that the system has; where there is none
    the package may know better.

    ctypes keeps all threads waiting while the dynamic loader works: for 10 MB from a slow disk that may be longer than
    who is held waits for the thread that says that refleak lives. A function that is called does not.
    """
    own = _own(package, sonames)
    load = ctypes.CDLL(None).dlopen
    load.restype, load.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
    for name in own[:1] or sonames:
        if load(os.fsencode(name), _MODE):
            return


def read_ahead(package: str, sonames: Sequence[str]) -> None:
    """Have the kernel read that library, if it has not yet; that is not waited for."""
    for path in [*_own(package, sonames), *_in(_SYSTEMS, sonames)][:1]:
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(file)


def _own(package: str, sonames: Sequence[str]) -> list[Path]:
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations or []
    return _in([f"{folder}/lib" for folder in folders], sonames)


def _in(folders: Iterable[str], sonames: Sequence[str]) -> list[Path]:
    return [path for folder in folders for name in sonames if (path := Path(folder, name)).exists()]
