"""Start-up binaries of a program: itself, its loader, and the libraries that this will map."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.binaries.interposers import mark_interposers
from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_libraries import VARIABLES, StartLibraries, seen_path
from tracer.files.plain_file import is_plain, read_start
from tracer.procfs.roots import OWN_ROOT, Root

_SCRIPT_LINE = 256
_MOST_SCRIPTS = 5
"""As in the kernel: what is still a script after so many interpreters is not executed (fs/exec.c)."""
_MOST_KEPT = 16
_NOTHING: Mapping[str, str] = {}


def start_up_binaries(
    binaries: Binaries, path: str, name: str, root: Root = OWN_ROOT, environment: Mapping[str, str] = _NOTHING
) -> list[OpenBinary]:
    """Open a program and what it will start with: its interpreter, if a script, its loader and libraries.

    `path`: as whoever starts it sees it, under `root`; `environment`: what is known of the one that it gets.
    """
    for _ in range(_MOST_SCRIPTS):
        place = root.place_of(path)
        if not is_plain(place):
            return []
        program = binaries.open([place], name)
        if program is not None:
            return _with_libraries(binaries, program, seen_path(root, place), root, environment)
        interpreter = _interpreter_of_script(place)
        if not interpreter:
            return []
        path = name = interpreter
    return []


def _with_libraries(
    binaries: Binaries, program: OpenBinary, path: str, root: Root, environment: Mapping[str, str]
) -> list[OpenBinary]:
    if not root.is_own:
        return _looked_for(binaries, program, path, root, environment)
    key = (path, *(environment.get(name, "") for name in VARIABLES))
    known = program.start_up
    if key not in known or any(binary.is_stale for binary in known[key]):
        if len(known) >= _MOST_KEPT:
            known.clear()
        found = _looked_for(binaries, program, path, root, environment)
        known[key] = list({binary.id: binary for binary in found}.values())
    return known[key]


def _looked_for(
    binaries: Binaries, program: OpenBinary, path: str, root: Root, environment: Mapping[str, str]
) -> list[OpenBinary]:
    found = [program, *StartLibraries(binaries, root, environment).of(program, path)]
    mark_interposers(found)
    return found


def _interpreter_of_script(path: str) -> str | None:
    try:
        line = read_start(path, _SCRIPT_LINE).partition(b"\n")[0]
    except OSError:
        return None
    words = line[2:].split()
    return words[0].decode(errors="surrogateescape") if line.startswith(b"#!") and words else None
