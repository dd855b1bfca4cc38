"""Sites of one binary, and those of earlier traces kept on disk: a held program waits while they are looked for.

A file holds what one binary has for one choice of functions. It is named by all that this depends on: the file's
version, the options, the costs of probes here, and refleak's own modules. As a probe in the midst of an instruction
would break the program, the code at every place is compared too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from tracer.binaries.file_version import FileVersion
from tracer.elf.image import Image
from tracer.files.json_codec import from_json, parse, sparse_json
from tracer.files.sealed_files import digest, name_of, read_sealed, write_sealed
from tracer.late_dataclasses import dataclass
from tracer.model.operations import Placement
from tracer.model.raw_calls import RawCalls
from tracer.model.snapshot import UncoveredInstances, Unresolved
from tracer.model.unwinding import UnwinderPlace

LIMIT_BYTES = 16 << 20
_SUFFIX = ".sites"
_LONGEST_CODE, _LEAST_CODE = 1 << 16, 64


@dataclass(frozen=True)
class FoundSites:
    placements: tuple[Placement, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    uncovered: tuple[UncoveredInstances, ...] = ()
    unwinders: tuple[UnwinderPlace, ...] = ()
    raw_calls: RawCalls = RawCalls()


@dataclass(frozen=True)
class _Kept:
    """What a file of the cache holds."""

    code: str
    sites: FoundSites


class KeptSites:
    """Those of one choice of functions, which `choice` spells out. A cache that cannot be used costs time, no sites."""

    def __init__(self, folder: Path, choice: str) -> None:
        self._folder, self._choice = folder, choice

    def find(self, image: Image, version: FileVersion, look: Callable[[], FoundSites]) -> FoundSites:
        """Return what `look` returns, from the cache where it is there."""
        path = self._folder / f"{self._key(image, version)}{_SUFFIX}"
        with suppress(OSError, ValueError):
            kept = from_json(_Kept, parse(read_sealed(path)))
            if kept.code == _code_of(image, kept.sites):
                return kept.sites
        found = look()
        if version.is_settled:
            with suppress(OSError):
                self._write(path, image, found)
        return found

    def _key(self, image: Image, version: FileVersion) -> str:
        return name_of(image.path, astuple(version), self._choice)

    def _write(self, path: Path, image: Image, found: FoundSites) -> None:
        body = json.dumps(sparse_json(_Kept(_code_of(image, found), found))).encode()
        write_sealed(path, body, LIMIT_BYTES)


def _code_of(image: Image, found: FoundSites) -> str:
    """Return a digest of the code that the places were found in."""
    return digest(*(image.data[start : start + size] for start, size in _ranges(found))).hex()


def _ranges(found: FoundSites) -> Iterator[tuple[int, int]]:
    for placement in found.placements:
        site = placement.site
        yield site.file_offset, min(max(site.size, _LEAST_CODE), _LONGEST_CODE)
        yield placement.file_offset, _LEAST_CODE
        yield placement.return_offset, _LEAST_CODE
    for place in found.unwinders:
        yield place.file_offset, _LEAST_CODE
    for offset in (*found.raw_calls.forks, *found.raw_calls.ends):
        yield offset - _LEAST_CODE, 2 * _LEAST_CODE
