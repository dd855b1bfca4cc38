"""Call frame information and ELF files made by hand, byte by byte, for the unwind tests."""

from __future__ import annotations

import struct

FIRST_ROW = b"\x0c\x07\x08\x90\x01"
"""def_cfa rsp+8, return address at CFA-8: how every CIE of x86-64 begins."""


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        last = (value, byte & 0x40) in ((0, 0), (-1, 0x40))
        out.append(byte | (0 if last else 0x80))
        if last:
            return bytes(out)


def record(body: bytes, long: bool = False) -> bytes:
    """A record with its length in front, padded with nops."""
    body += b"\0" * (-len(body) % 4)
    return (b"\xff\xff\xff\xff" + struct.pack("<Q", len(body)) if long else struct.pack("<I", len(body))) + body


def common(
    program: bytes = FIRST_ROW,
    augmentation: bytes = b"zR",
    data: bytes = b"\x1b",
    version: int = 1,
    code_factor: int = 1,
    data_factor: int = -8,
    register: int = 16,
    mark: bytes = b"\0\0\0\0",
    long: bool = False,
) -> bytes:
    """A CIE; `data` is what its augmentation letters need."""
    body = mark + bytes([version]) + augmentation + b"\0"
    if version == 4:
        body += b"\x08\0"
    body += uleb(code_factor) + sleb(data_factor) + uleb(register)
    if augmentation.startswith(b"z"):
        body += uleb(len(data)) + data
    return record(body + program, long)


class EhFrame:
    """An .eh_frame at `address`, grown record by record. Functions belong to the last CIE before them."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.data = b""
        self._common = 0

    def common(self, *arguments: object, **options: object) -> EhFrame:
        self._common = len(self.data)
        self.data += common(*arguments, **options)  # type: ignore[arg-type]
        return self

    def function(self, start: int, length: int, program: bytes = b"") -> EhFrame:
        at = len(self.data) + 4
        place = struct.pack("<iI", start - (self.address + at + 4), length)
        self.data += record(struct.pack("<I", at - self._common) + place + b"\0" + program)
        return self

    def end(self) -> bytes:
        return self.data + b"\0\0\0\0"


def elf(sections: list[tuple[str, int, bytes]], code: list[tuple[int, int]], header_at: int | None = None) -> bytes:
    """An ELF file with sections (name, link address, bytes) and executable segments (link address, memory size).

    Each section with an address lies in a readable segment of its own. With `header_at` (a link address) there is
    a PT_GNU_EH_FRAME and no section header.
    """
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".shstrtab\0"
    segments = [(1, 5, 0, address, 0, size) for address, size in code]
    at = 64 + 56 * (len(code) + len(sections) + 1)
    body, headers, name_at = b"", [bytes(64)], 1
    for name, address, data in sections:
        offset = at + len(body)
        if address:
            segments.append((1, 4, offset, address, len(data), len(data)))
        if address and address == header_at:
            segments.append((0x6474E550, 4, offset, address, len(data), len(data)))
        headers.append(struct.pack("<IIQQQQIIQQ", name_at, 1, 2, address, offset, len(data), 0, 0, 1, 0))
        name_at += len(name) + 1
        body += data
    headers.append(struct.pack("<IIQQQQIIQQ", name_at, 3, 0, 0, at + len(body), len(names), 0, 0, 1, 0))
    body += names
    table = b"".join(struct.pack("<IIQQQQQQ", k, f, o, a, a, fs, ms, 1) for k, f, o, a, fs, ms in segments)
    table = table.ljust(at - 64, b"\0")
    shoff, shnum = (0, 0) if header_at else (at + len(body), len(headers))
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, shoff, 0, 64, 56, len(segments), 64, shnum, max(shnum - 1, 0)
    )
    return head + table + body + b"".join(headers)
