"""Frame sources: where a binary keeps its call frame information."""

from __future__ import annotations

import struct

from tracer.cfi.call_frames import FrameSource
from tracer.elf.image import PT_GNU_EH_FRAME, PT_LOAD, Image

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
    for header in image.segments:
        if header.type != PT_GNU_EH_FRAME:
            continue
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
    return None


def _segment_rest(image: Image, address: int) -> FrameSource | None:
    for s in image.segments:
        if s.type == PT_LOAD and s.link_address <= address < s.link_address + s.file_size:
            data = image.data[s.file_offset + address - s.link_address : s.file_offset + s.file_size]
            return FrameSource(data, address, ends_at_zero=True)
    return None
