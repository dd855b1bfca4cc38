"""Answers of a binary's symbols to questions for single names: asked once, and kept on disk for other traces.

The names of a large library are tens of megabytes, to read and search which takes half a second, while a program that
starts is held: some give their children no longer than that. A kept answer is of one state of the file, and the code
at each function that it names is compared, since a probe in the midst of an instruction would break the program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from tracer.binaries.file_version import FileVersion
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, STT_GNU_IFUNC, Symbol, read_symbol_table
from tracer.files.json_codec import from_json, parse, sparse_json
from tracer.files.sealed_files import digest, name_of, read_sealed, write_sealed
from tracer.late_dataclasses import dataclass

LIMIT_BYTES = 4 << 20
_SUFFIX = ".names"
_CODE_BYTES = 64


@dataclass(frozen=True)
class _Answers:
    """What a file of the cache holds. `code`: a digest of the code at the functions that were found."""

    code: str
    found: Mapping[str, tuple[Symbol, ...]]
    told: Mapping[str, bool]


class KnownNames:
    """The answers of one binary."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._found: dict[str, tuple[Symbol, ...]] = {}
        self._told: dict[str, bool] = {}
        self._path: Path | None = None
        """Where they are kept; None: nowhere."""
        self._kept = 0

    def find(self, name: str) -> tuple[Symbol, ...]:
        """Return every function, IFUNC and data object of this name, ordered by address."""
        if name not in self._found:
            self._found[name] = read_symbol_table(self._image).find(name)
        return self._found[name]

    def mentions(self, fragment: str) -> bool:
        """Tell whether any name, even of an undefined symbol, contains `fragment`."""
        return self.tells(f"mentions {fragment}", lambda: read_symbol_table(self._image).mentions(fragment))

    def lacks(self, name: str) -> bool:
        """Tell whether the binary refers to `name` without defining it."""
        return self.tells(f"lacks {name}", lambda: read_symbol_table(self._image).lacks(name))

    def tells(self, question: str, look: Callable[[], bool]) -> bool:
        """Return what `look` returns, which depends on the binary's file alone."""
        if question not in self._told:
            self._told[question] = look()
        return self._told[question]

    def keep(self, folder: Path, version: FileVersion) -> None:
        """Take what is kept of this state of the file, and have `save` add to it."""
        path = folder / f"{name_of(self._image.path, astuple(version))}{_SUFFIX}"
        with suppress(OSError, ValueError):
            kept = from_json(_Answers, parse(read_sealed(path)))
            if kept.code == self._code(kept.found):
                self._found, self._told = {**kept.found, **self._found}, {**kept.told, **self._told}
                self._kept = len(kept.found) + len(kept.told)
        if version.is_settled:
            self._path = path

    def save(self) -> None:
        """Keep what was asked anew. A cache that cannot be used costs time, no answer."""
        if self._path is not None and len(self._found) + len(self._told) > self._kept:
            body = json.dumps(sparse_json(_Answers(self._code(self._found), self._found, self._told))).encode()
            with suppress(OSError):
                write_sealed(self._path, body, LIMIT_BYTES)
            self._kept = len(self._found) + len(self._told)

    def _code(self, found: Mapping[str, tuple[Symbol, ...]]) -> str:
        return digest(*(self._image.data[at : at + _CODE_BYTES] for at in self._functions(found))).hex()

    def _functions(self, found: Mapping[str, tuple[Symbol, ...]]) -> Iterator[int]:
        """Yield where in the file the functions stand."""
        for name in sorted(found):
            for symbol in found[name]:
                at = self._image.file_offset_of(symbol.address)
                if symbol.kind in (STT_FUNC, STT_GNU_IFUNC) and at is not None:
                    yield at
