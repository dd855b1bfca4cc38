"""Separate debug files of a binary, found where GDB looks for them.

Source: GDB manual, "Debugging Information in Separate Files"; debuginfod-find(1).
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tracer.elf.image import SHT_NOBITS, Image
from tracer.errors import RefleakError
from tracer.files.cache_folder import cache_directory, open_folder
from tracer.late_dataclasses import dataclass

SYSTEM_DIRECTORY = "/usr/lib/debug"
FETCH_TIMEOUT_S = 60.0
_LARGEST_SUMMED = 1 << 32
"""A sum over more, which may be a hole in a file, takes longer than its names are worth."""
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class DebugLink:
    """Contents of .gnu_debuglink: the debug file's basename and the CRC-32 of its bytes."""

    name: str
    checksum: int


@dataclass(frozen=True)
class DebugFile:
    path: str
    found_by: str
    """"build id", "debug link" or "debuginfod"."""


def has_dwarf(image: Image) -> bool:
    """Tell whether the file itself holds DWARF, compressed or not."""
    return any(
        s.name in (".debug_info", ".zdebug_info") and s.type != SHT_NOBITS and s.size > 0 for s in image.sections
    )


def has_shared_dwarf(image: Image) -> bool:
    """Tell whether part of the file's DWARF is in another file that dwz(1) made."""
    return image.section(".gnu_debugaltlink") is not None


def read_debug_link(image: Image) -> DebugLink | None:
    """Return the debug link; None where it is missing, damaged, or leads out of its folder."""
    section = image.section(".gnu_debuglink")
    if section is None:
        return None
    data = bytes(image.contents(section)[:4096])
    raw_name, found, _ = data.partition(b"\0")
    at = (len(raw_name) + 4) & ~3
    name = os.fsdecode(raw_name)
    if not found or at + 4 > len(data) or name in ("", ".", "..") or "/" in name:
        return None
    return DebugLink(name, struct.unpack_from("<I", data, at)[0])


class DebugFiles:
    """Where debug files are looked for: given directories, the system's, next to the binary, debuginfod.

    debuginfod is asked only where DEBUGINFOD_URLS is set and `debuginfod-find` exists, and never again
    after it did not answer in `fetch_timeout_s`.
    """

    def __init__(self, directories: Sequence[str] = (), fetch_timeout_s: float = FETCH_TIMEOUT_S) -> None:
        self.directories = (*directories, SYSTEM_DIRECTORY)
        self._fetch_timeout_s = fetch_timeout_s
        self._fetcher = shutil.which("debuginfod-find") if os.environ.get("DEBUGINFOD_URLS") else None

    def find(self, path: str, build_id: str | None, image: Image | None) -> DebugFile | None:
        """Return the debug file of the binary at `path`; `image` is None where the binary is gone.

        A file found by build id has that build id; one found by debug link has the link's CRC, or the
        binary's build id.
        """
        if build_id is not None and not re.fullmatch("[0-9a-f]{4,}", build_id):
            build_id = None
        if build_id:
            for candidate in self._by_build_id(build_id):
                if _build_id_of(candidate) == build_id:
                    return DebugFile(str(candidate), "build id")
        link = read_debug_link(image) if image is not None else None
        if link is not None:
            for candidate in self._by_link(path, link):
                if _matches(candidate, link, build_id) and not _is_same(candidate, path):
                    return DebugFile(str(candidate), "debug link")
        return self._fetch(build_id) if build_id else None

    def _by_build_id(self, build_id: str) -> Iterator[Path]:
        for directory in self.directories:
            yield Path(directory, ".build-id", build_id[:2], build_id[2:] + ".debug")

    def _by_link(self, path: str, link: DebugLink) -> Iterator[Path]:
        folder = Path(path).parent
        yield folder / link.name
        yield folder / ".debug" / link.name
        for directory in self.directories:
            yield Path(directory, str(folder).lstrip("/"), link.name)
            yield Path(directory, link.name)

    def _fetch(self, build_id: str) -> DebugFile | None:
        if self._fetcher is None:
            return None
        try:
            answer = subprocess.run(
                [self._fetcher, "debuginfo", build_id],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=self._fetch_timeout_s, check=False,
                env=_fetch_environment(),
            )
        except (OSError, subprocess.TimeoutExpired):
            self._fetcher = None
            return None
        path = Path(os.fsdecode(answer.stdout.strip()))
        if answer.returncode != 0 or _build_id_of(path) != build_id:
            return None
        return DebugFile(str(path), "debuginfod")


def _fetch_environment() -> dict[str, str]:
    """Return what debuginfod-find gets: as root it keeps its files in root's cache, in nobody's home.

    Raises OSError where root has no such folder.
    """
    if os.geteuid() != 0:
        return dict(os.environ)
    directory = cache_directory() / "debuginfod"
    os.close(open_folder(directory, create=True))
    return {**os.environ, "DEBUGINFOD_CACHE_PATH": str(directory)}


def _build_id_of(path: Path) -> str | None:
    with suppress(RefleakError, OSError, ValueError), Image.open(path) as image:
        return image.build_id
    return None


def _matches(path: Path, link: DebugLink, build_id: str | None) -> bool:
    """Compare build ids, which costs nothing, and where one is missing the whole file's CRC."""
    with suppress(RefleakError, OSError, ValueError), Image.open(path) as image:
        if build_id and image.build_id:
            return image.build_id == build_id
        return len(image.data) <= _LARGEST_SUMMED and _checksum(image) == link.checksum
    return False


def _checksum(image: Image) -> int:
    checksum = 0
    for at in range(0, len(image.data), _AT_ONCE):
        checksum = zlib.crc32(image.data[at : at + _AT_ONCE], checksum)
    return checksum


def _is_same(candidate: Path, path: str) -> bool:
    with suppress(OSError):
        return candidate.samefile(path)
    return False
