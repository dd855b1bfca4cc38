"""Headers of the units of .debug_info (DWARF 5, section 7.5.1; DWARF 4 and 3 have it in another order)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tracer.late_dataclasses import dataclass

UNIT_COMPILE, UNIT_PARTIAL = 1, 3


@dataclass(frozen=True)
class UnitHeader:
    """Where the entries of a unit begin and end, and where its abbreviations are."""

    offset: int
    first: int
    end: int
    kind: int
    abbreviations: int
    offset_size: int
    version: int


def read_header(info: bytes, at: int) -> UnitHeader | None:
    """Return the header of the unit at `at`; None where it makes no sense. Raises IndexError or struct.error."""
    length, size, start = *struct.unpack_from("<I", info, at), 4, at + 4
    if length == 0xFFFFFFFF:
        length, size, start = *struct.unpack_from("<Q", info, at + 4), 8, at + 12
    end = start + length
    (version,) = struct.unpack_from("<H", info, start)
    if not 3 <= version <= 5 or end > len(info) or length < 7:
        return None
    offset = "<Q" if size == 8 else "<I"
    if version == 5:
        kind, address_size = info[start + 2], info[start + 3]
        (abbreviations,) = struct.unpack_from(offset, info, start + 4)
        first = start + 4 + size
    else:
        kind, address_size = UNIT_COMPILE, info[start + 2 + size]
        (abbreviations,) = struct.unpack_from(offset, info, start + 2)
        first = start + 3 + size
    return UnitHeader(at, first, end, kind, abbreviations, size, version) if address_size == 8 else None


def read_headers(info: bytes) -> Iterator[UnitHeader]:
    """Yield the header of each unit that is compiled code; ends at the first one that makes no sense."""
    at = 0
    try:
        while at + 11 <= len(info) and (header := read_header(info, at)) is not None:
            if header.kind == UNIT_COMPILE:
                yield header
            at = header.end
    except (IndexError, struct.error):
        return
