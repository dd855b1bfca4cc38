"""Sources of one binary's names: the file that ran, its debug file, their symbol tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path

from tracer.elf.debug_files import DebugFiles, has_dwarf, has_shared_dwarf
from tracer.elf.image import Image
from tracer.elf.symbol_table import Symbol, SymbolTable, read_symbol_table
from tracer.errors import RefleakError
from tracer.files.plain_file import is_plain
from tracer.late_dataclasses import dataclass
from tracer.model.snapshot import Binary


@dataclass
class Source:
    """The opened files of one binary; `images` are the debug file first, then the file that ran."""

    images: tuple[Image, ...] = ()
    dwarf: Image | None = None
    ran: Image | None = None
    """The file that ran, with its code."""
    why_nothing: str | None = None
    """Why there is no file to take names from."""
    _defined: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def tables(self) -> tuple[SymbolTable, ...]:
        return tuple(table for table in map(_table, self.images) if table is not None)

    def covering(self, link_address: int) -> Symbol | None:
        """Return the function whose size covers the address."""
        found = (table.covering(link_address) for table in self.tables)
        return next((symbol for symbol in found if symbol is not None), None)

    def defines(self, function: str) -> bool:
        """Tell whether a symbol has this name, wherever it stands."""
        if function not in self._defined:
            self._defined[function] = any(table.find(function) for table in self.tables)
        return self._defined[function]

    @property
    def dwarf_path(self) -> str | None:
        """Return a path of the file with DWARF that a child process can open too."""
        if self.dwarf is None:
            return None
        path = self.dwarf.path
        return f"/proc/{os.getpid()}/{path[11:]}" if path.startswith("/proc/self/") else path

    @property
    def dwarf_bytes(self) -> int:
        return len(self.dwarf.data) if self.dwarf is not None else 0

    @property
    def shares_dwarf(self) -> bool:
        return self.dwarf is not None and has_shared_dwarf(self.dwarf)

    def close(self) -> None:
        self.__dict__.pop("tables", None)
        for image in self.images:
            image.close()


def _table(image: Image) -> SymbolTable | None:
    try:
        return read_symbol_table(image)
    except Exception:  # a damaged file, or one made to harm: it costs names, never the report
        return None


def open_source(binary: Binary, debug_files: DebugFiles) -> Source:
    """Open what is left of a binary; never another file that has taken its path."""
    try:
        return _opened(binary, debug_files)
    except Exception as error:  # a damaged file, or one made to harm: it costs names, never the report
        return Source(why_nothing=f"its file could not be understood ({type(error).__name__})")


def _opened(binary: Binary, debug_files: DebugFiles) -> Source:
    image, why = _open_image(binary)
    build_id = binary.build_id or (image.build_id if image is not None else None)
    if image is not None and has_dwarf(image):
        return Source((image,), image, image)
    path = binary.path if image is None or image.path.startswith("/proc/") else image.path
    found = debug_files.find(path, build_id, image)
    debug = _open(found.path)[0] if found is not None else None
    images = tuple(i for i in (debug, image) if i is not None)
    dwarf = debug if debug is not None and has_dwarf(debug) else None
    return Source(images, dwarf, image, None if images else why)


def _open_image(binary: Binary) -> tuple[Image | None, str]:
    why = "the file that ran is gone"
    for path in _paths(binary):
        image, trouble = _open(path)
        if image is None:
            why = trouble
        elif binary.build_id is not None and image.build_id != binary.build_id:
            image.close()
            why = "the file on disk is another build"
        else:
            return image, ""
    return None, why


def _paths(binary: Binary) -> Iterator[str]:
    if binary.open_path is not None:
        yield binary.open_path
    if binary.path.startswith("/") and not (binary.deleted and binary.build_id is None):
        yield binary.path


def _open(path: str) -> tuple[Image | None, str]:
    try:
        if not Path(path).exists():
            return None, "the file that ran is gone"
        if not is_plain(path):
            return None, "its path is no file"
        return Image.open(path), ""
    except (RefleakError, OSError, ValueError) as error:
        return None, str(error)
