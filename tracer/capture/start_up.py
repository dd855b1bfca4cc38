"""What a program starts with: itself, its loader, and the libraries that this will map."""

from __future__ import annotations

from pathlib import Path

from tracer.capture.binaries import Binaries, OpenBinary
from tracer.procfs.loader import start_up_libraries
from tracer.procfs.roots import OWN_ROOT, Root

_SCRIPT_LINE = 256


def start_up_binaries(binaries: Binaries, path: str, name: str, root: Root = OWN_ROOT) -> list[OpenBinary]:
    """Open a program and what it will start with: its interpreter, if a script, its loader and libraries.

    `path`: as whoever starts it sees it, under `root`. Under another root than this process's the libraries are left
    to be seen when they are mapped: to ask for them would run that root's loader as this user.
    """
    place = root.place_of(path)
    if not _is_file(place):
        return []
    program = binaries.open([place], name)
    if program is None:
        interpreter = _interpreter_of_script(place)
        return start_up_binaries(binaries, interpreter, interpreter, root) if interpreter else []
    loader = program.image.interpreter
    if not root.is_own:
        found = binaries.open([root.place_of(loader)], loader) if loader is not None else None
        return [program, found] if found is not None else [program]
    # asked once for these files: what another environment adds is seen when it is mapped
    if program.start_up is None or any(b.is_stale for b in program.start_up):
        paths = [loader, *start_up_libraries(place, loader)] if loader is not None else []
        opened = (binaries.open([library], library) for library in paths)
        program.start_up = list({b.id: b for b in (program, *opened) if b is not None}.values())
    return program.start_up


def _is_file(path: str) -> bool:
    """Tell whether it is a plain file; False where it may not be looked at, as in another user's mount."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def _interpreter_of_script(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            line = file.readline(_SCRIPT_LINE)
    except OSError:
        return None
    words = line[2:].split()
    return words[0].decode(errors="surrogateescape") if line.startswith(b"#!") and words else None
