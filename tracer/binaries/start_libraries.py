"""Start libraries of a program, worked out as its loader does, from what is written in files.

Neither the program nor its loader is run: both can be another user's, and a library that a program names as its
auditor (DT_AUDIT) would run with our rights. What is missed here is seen when the loader maps it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.elf import library_paths
from tracer.elf.image import ET_DYN
from tracer.elf.loader_cache import PATH, LoaderCache, read_loader_cache
from tracer.files.plain_file import open_plain
from tracer.late_dataclasses import dataclass
from tracer.procfs.roots import Root

LIBRARY_PATH, PRELOAD = VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")
"""What of the environment steers a loader."""
MOST_STEPS = 4_000
"""Names looked up and files tried. The largest programs need some hundred; one made for it, any number."""
_MOST_NEEDED = 1000
_MOST_LIST_BYTES = 1 << 16


@dataclass(frozen=True)
class _Loaded:
    """A binary, where its process sees it, and which one made the loader load it."""

    binary: OpenBinary
    path: str
    parent: _Loaded | None = None

    @cached_property
    def origin(self) -> str:
        return self.path.rpartition("/")[0] or "/"

    @property
    def ancestors(self) -> Iterator[_Loaded]:
        """Yield it and those that it was loaded for, up to the program."""
        one: _Loaded | None = self
        while one is not None:
            yield one
            one = one.parent


class StartLibraries:
    """One walk through what a program needs, under the root of the process that starts it."""

    def __init__(self, binaries: Binaries, root: Root, environment: Mapping[str, str]) -> None:
        self._binaries, self._root, self._environment = binaries, root, environment
        self.steps = 0
        self._known: dict[str, OpenBinary] = {}
        self._ids: set[int] = set()
        self._folders: dict[str, bool] = {}

    def of(self, program: OpenBinary, path: str) -> list[OpenBinary]:
        """Return the loader and the libraries; `path`: the program's as the process sees it, without links."""
        name = program.image.interpreter
        loader = self._open(name) if name else None
        if name is None or loader is None:
            return []
        self._musl = library_paths.musl_list(name)
        self._program = _Loaded(program, path)
        self._enter(loader, name.rpartition("/")[2])
        waiting = [self._program, *self._preloaded()]
        for loaded in waiting:  # breadth first: it grows meanwhile
            image = loaded.binary.image
            for needed in islice(chain(image.filtees, image.needed), _MOST_NEEDED):
                found = self._load(needed, loaded)
                if found is not None:
                    waiting.append(found)
        return list({binary.id: binary for binary in (loader, *(loaded.binary for loaded in waiting[1:]))}.values())

    def _preloaded(self) -> list[_Loaded]:
        names = library_paths.preloaded(self._environment.get(PRELOAD, ""))
        if not self._musl:
            names += library_paths.preloaded_by_file(self._text(library_paths.PRELOAD_FILE))
        return [found for name in names if (found := self._load(name, self._program)) is not None]

    def _load(self, name: str, needed_by: _Loaded) -> _Loaded | None:
        """Return what a name stands for; None where that is loaded already, or not found."""
        if name in self._known or not self._may_go_on():
            return None
        if self._musl and library_paths.MUSL_OWN.match(name):
            return None
        for path in self._candidates(name, needed_by):
            if not self._may_go_on():
                return None
            binary = self._open(path)
            if binary is not None:
                is_new = binary.id not in self._ids
                self._enter(binary, name)
                return _Loaded(binary, path, needed_by) if is_new else None
        return None

    def _enter(self, binary: OpenBinary, name: str) -> None:
        self._ids.add(binary.id)
        for known in (name, binary.image.soname):
            if known is not None:
                self._known.setdefault(known, binary)

    def _candidates(self, name: str, needed_by: _Loaded) -> Iterator[str]:
        if "/" in name:
            yield from library_paths.expanded(name, needed_by.origin)
            return
        for folder in self._musl_folders(needed_by) if self._musl else self._searched(needed_by):
            yield from self._in_folder(folder, name)
        if self._musl or needed_by.binary.image.avoids_default_folders:
            return
        cached = self._cache.find(name, library_paths.processor_levels())
        if cached is not None:
            yield cached
        for folder in library_paths.DEFAULT_FOLDERS:
            yield from self._in_folder(folder, name)

    def _searched(self, needed_by: _Loaded) -> Iterator[str]:
        """Yield the folders that glibc's loader looks into before those of the system."""
        if needed_by.binary.image.runpath is None:
            for loaded in (*needed_by.ancestors, self._program):
                yield from library_paths.folders_of(loaded.binary.image.rpath or "", loaded.origin)
        yield from library_paths.folders_of(self._environment.get(LIBRARY_PATH, ""), self._program.origin, ":;")
        yield from library_paths.folders_of(needed_by.binary.image.runpath or "", needed_by.origin)

    def _musl_folders(self, needed_by: _Loaded) -> Iterator[str]:
        yield from library_paths.folders_of(self._environment.get(LIBRARY_PATH, ""), None, ":\n")
        for loaded in needed_by.ancestors:
            image = loaded.binary.image
            yield from library_paths.folders_of(image.runpath or image.rpath or "", loaded.origin)
        yield from library_paths.musl_folders(self._text(self._musl or "")) or library_paths.MUSL_FOLDERS

    def _in_folder(self, folder: str, name: str) -> Iterator[str]:
        for place in (folder,) if self._musl else library_paths.with_levels(folder):
            if place not in self._folders:
                if not self._may_go_on():
                    return
                self._folders[place] = _is_folder(self._root.place_of(place))
            if self._folders[place]:
                yield f"{place}/{name}"

    @cached_property
    def _cache(self) -> LoaderCache:
        return read_loader_cache(self._root.place_of(PATH))

    def _text(self, path: str) -> str:
        try:
            with open(open_plain(self._root.place_of(path)), "rb") as file:
                return file.read(_MOST_LIST_BYTES).decode(errors="surrogateescape")
        except OSError:
            return ""

    def _may_go_on(self) -> bool:
        self.steps += 1
        return self.steps < MOST_STEPS

    def _open(self, path: str) -> OpenBinary | None:
        """Open a library for this machine; None for all else."""
        place = self._root.place_of(path)
        found = self._binaries.open([place], path if path.startswith("/") else seen_path(self._root, place))
        fits = found is not None and (found.image.type, found.image.machine) == (ET_DYN, ARCHITECTURE.elf_machine)
        return found if fits else None


def seen_path(root: Root, place: str) -> str:
    """Return the path without links that a process has for what `root` finds at `place`."""
    return os.path.realpath(place) if root.is_own else place.removeprefix(root.directory)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False
