"""Frame sources: where a binary keeps its call frame information."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from tracer.cfi.call_frames import FrameSource
from tracer.elf.image import PT_GNU_EH_FRAME, PT_LOAD, Image, Segment

_TABLE_FORMS = b"\x03\x3b"
"""What linkers write: the count as 4 bytes, the table as pairs of 4 signed bytes, relative to the header."""
_FORMS = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}


def frame_sources(image: Image) -> tuple[FrameSource, ...]:
    """Return .eh_frame (by its section, else by PT_GNU_EH_FRAME) and .debug_frame, as far as they are there.

    A program built with -fno-asynchronous-unwind-tables has both: the start-up code in the first, itself in the other.
    """
    text, table = image.section(".text"), image.section(".got.plt") or image.section(".got")
    text_base = text.link_address if text else None
    table_base = table.link_address if table else None
    found = []
    section = image.section(".eh_frame")
    data = image.contents(section) if section else b""
    if section and data:
        found.append(FrameSource(data, section.link_address, text=text_base, table=table_base))
    elif through_header := _through_header(image):
        found.append(through_header)
    section = image.section(".debug_frame")
    data = image.contents(section) if section else b""
    if data:
        found.append(FrameSource(data, 0, debug=True, text=text_base, table=table_base))
    return tuple(found)


def _through_header(image: Image) -> FrameSource | None:
    """Follow the eh_frame_ptr of .eh_frame_hdr (LSB Core 5.0, "The .eh_frame_hdr section")."""
    header = _search_header(image)
    if header is None:
        return None
    at = header.file_offset
    try:
        version, encoding = image.unpack("<BB", at)
        form, relation = _FORMS.get(encoding & 0x0F), encoding & 0xF0
        if version != 1 or form is None or relation not in (0x00, 0x10, 0x30):
            return None
        address: int = image.unpack(form, at + 4)[0]
    except (struct.error, OverflowError):  # a damaged offset, which may be beyond any file
        return None
    address += {0x00: 0, 0x10: header.link_address + 4, 0x30: header.link_address}[relation]
    return _segment_rest(image, address & (1 << 64) - 1)


def _search_header(image: Image) -> Segment | None:
    return next((segment for segment in image.segments if segment.type == PT_GNU_EH_FRAME), None)


def search_table(image: Image) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the addresses of the functions in .eh_frame, ascending, and those of their records, by the table that
    linkers make for unwinders (LSB Core 5.0, "The .eh_frame_hdr section"); None where there is none in its usual form.
    """
    header = _search_header(image)
    if header is None:
        return None
    contents = bytes(image.data[header.file_offset : header.file_offset + header.file_size])
    size = struct.calcsize(_FORMS.get(contents[1] & 0x0F, "<Q")) if len(contents) > 4 else 0
    if contents[:1] != b"\x01" or contents[2:4] != _TABLE_FORMS or len(contents) < 8 + size:
        return None
    count = int.from_bytes(contents[4 + size : 8 + size], "little")
    if count > (len(contents) - 8 - size) // 8:
        return None
    pairs = np.frombuffer(contents, "<i4", 2 * count, 8 + size).astype(np.int64) + header.link_address
    starts, records = pairs[::2], pairs[1::2]
    return (starts, records) if (starts[1:] >= starts[:-1]).all() else None


def _segment_rest(image: Image, address: int) -> FrameSource | None:
    for s in image.segments:
        if s.type == PT_LOAD and s.link_address <= address < s.link_address + s.file_size:
            data = image.data[s.file_offset + address - s.link_address : s.file_offset + s.file_size]
            return FrameSource(data, address, ends_at_zero=True)
    return None
