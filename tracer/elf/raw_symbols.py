"""The symbol tables of a binary as they stand in the file: arrays and strings, nothing decoded.

Layouts: gABI chapter 4 (symbol table) and 5 (dynamic section, hash table); the GNU hash table as
binutils writes it; symbol versions: Linux Standard Base 5.0, "Symbol Versioning".
"""

from __future__ import annotations

import lzma
import struct
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tracer.elf.image import PT_DYNAMIC, SHT_DYNSYM, SHT_SYMTAB, Image
from tracer.errors import UnsuitableTarget
from tracer.late_dataclasses import dataclass

SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
SHN_UNDEF, SHN_ABS, SHN_COMMON = 0, 0xFFF1, 0xFFF2
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 4, 5, 6, 10
DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
LARGEST_DEBUGDATA = 1 << 28
_LARGEST_TABLE = 1 << 20
EMPTY = memoryview(b"")

Array = npt.NDArray[np.void]


@dataclass(frozen=True)
class RawSymbols:
    """One symbol table: `array` of SYMBOL, its string table, and per symbol the index of its version."""

    array: Array
    strings_view: memoryview
    version_indexes: npt.NDArray[np.uint16] | None = None
    version_offsets: dict[int, int] = field(default_factory=dict)
    """Version index to its name's place in the string table."""

    @cached_property
    def strings(self) -> bytes:
        return bytes(self.strings_view)

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """Return STT_* of each symbol; 0xff for one that this binary does not define."""
        section = self.array["section"]
        defined = (section != SHN_UNDEF) & (section != SHN_ABS) & (section != SHN_COMMON)
        return np.where(defined, self.array["info"] & 15, 0xFF).astype(np.uint8)

    def text(self, offset: int) -> str:
        end = self.strings.find(b"\0", offset)
        return self.strings[offset : end if end >= 0 else len(self.strings)].decode("utf-8", "replace")

    def version(self, index: int) -> str:
        """Return the version of the symbol at `index`; empty for none."""
        if self.version_indexes is None:
            return ""
        offset = self.version_offsets.get(int(self.version_indexes[index]) & 0x7FFF)
        return "" if offset is None else self.text(offset)


def read_raw_symbols(image: Image) -> list[RawSymbols]:
    """Return the symbol tables of `image`, fullest first; damaged ones are left out.

    .gnu_debugdata is unpacked only where .symtab is missing, since it holds nothing that .symtab lacks.
    """
    tables = [_from_section(image, SHT_SYMTAB), _from_section(image, SHT_DYNSYM) or _from_dynamic(image)]
    if tables[0] is None:
        tables.append(_from_debugdata(image))
    return [table for table in tables if table is not None and len(table.array)]


def _from_section(image: Image, kind: int) -> RawSymbols | None:
    section = next((s for s in image.sections if s.type == kind), None)
    if section is None or section.entry_size not in (0, SYMBOL.itemsize) or section.link >= len(image.sections):
        return None
    array = _symbols(image.contents(section))
    strings = image.contents(image.sections[section.link])
    if not len(array) or not len(strings):
        return None
    if kind == SHT_DYNSYM:
        return _versioned(image, _dynamic(image), array, strings)
    return RawSymbols(array, strings)


def _from_dynamic(image: Image) -> RawSymbols | None:
    """Return the dynamic symbols as the loader finds them, for binaries without section headers."""
    dynamic = _dynamic(image)
    count = _count_by_gnu_hash(image, dynamic) or _count_by_hash(image, dynamic)
    strings = _at(image, dynamic.get(DT_STRTAB), dynamic.get(DT_STRSZ, 0))
    array = _symbols(_at(image, dynamic.get(DT_SYMTAB), count * SYMBOL.itemsize))
    return _versioned(image, dynamic, array, strings) if len(array) and len(strings) else None


def _from_debugdata(image: Image) -> RawSymbols | None:
    """Return .symtab of the xz-compressed ELF in .gnu_debugdata (GDB manual, "MiniDebugInfo")."""
    section = image.section(".gnu_debugdata")
    if section is None:
        return None
    try:
        unpacked = lzma.LZMADecompressor(memlimit=LARGEST_DEBUGDATA).decompress(
            image.contents(section), max_length=LARGEST_DEBUGDATA
        )
        return _from_section(Image(unpacked, image.path), SHT_SYMTAB)
    except (lzma.LZMAError, EOFError, MemoryError, UnsuitableTarget):
        return None


def _symbols(data: memoryview) -> Array:
    return np.frombuffer(data, SYMBOL, len(data) // SYMBOL.itemsize)


def _dynamic(image: Image) -> dict[int, int]:
    segment = next((s for s in image.segments if s.type == PT_DYNAMIC), None)
    if segment is None or segment.file_offset + segment.file_size > len(image.data):
        return {}
    count = segment.file_size // 16
    pairs = image.unpack(f"<{2 * count}Q", segment.file_offset)
    return dict(zip(pairs[0::2], pairs[1::2], strict=True))


def _at(image: Image, link_address: int | None, size: int) -> memoryview:
    """Return `size` bytes at a link address, or nothing where the file does not hold them all."""
    offset = image.file_offset_of(link_address) if link_address else None
    if offset is None or offset + size > len(image.data):
        return EMPTY
    return image.data[offset : offset + size]


def _rest(image: Image, link_address: int | None) -> memoryview:
    offset = image.file_offset_of(link_address) if link_address else None
    return EMPTY if offset is None else image.data[offset : offset + _LARGEST_TABLE]


def _count_by_hash(image: Image, dynamic: dict[int, int]) -> int:
    header = _at(image, dynamic.get(DT_HASH), 8)
    return int(struct.unpack("<II", header)[1]) if header else 0


def _count_by_gnu_hash(image: Image, dynamic: dict[int, int]) -> int:
    """Return one more than the last symbol of the last chain, whose hash has its lowest bit set."""
    table = _rest(image, dynamic.get(DT_GNU_HASH))
    if len(table) < 16:
        return 0
    bucket_count, first, bloom_words, _ = struct.unpack_from("<IIII", table, 0)
    at = 16 + 8 * bloom_words
    if at + 4 * bucket_count > len(table):
        return 0
    last = int(np.frombuffer(table, "<u4", bucket_count, at).max(initial=0))
    at += 4 * bucket_count + 4 * (last - first)
    if last < first or at > len(table):
        return int(first)
    ends = np.flatnonzero(np.frombuffer(table, "<u4", (len(table) - at) // 4, at) & 1)
    return last + int(ends[0]) + 1 if len(ends) else 0


def _versioned(image: Image, dynamic: dict[int, int], array: Array, strings: memoryview) -> RawSymbols:
    indexes = _at(image, dynamic.get(DT_VERSYM), 2 * len(array))
    if not indexes:
        return RawSymbols(array, strings)
    offsets = _defined_versions(_rest(image, dynamic.get(DT_VERDEF)), dynamic.get(DT_VERDEFNUM, 0))
    return RawSymbols(array, strings, np.frombuffer(indexes, "<u2"), offsets)


def _defined_versions(table: memoryview, count: int) -> dict[int, int]:
    """Return index and place of the name of each Elf64_Verdef; index 1 is the binary itself, no version."""
    found: dict[int, int] = {}
    at = 0
    for _ in range(min(count, 0x7FFF)):
        if at + 20 > len(table):
            break
        _, _, index, _, _, first_name, step = struct.unpack_from("<HHHHIII", table, at)
        if at + first_name + 4 > len(table):
            break
        if index & 0x7FFF > 1:
            found[index & 0x7FFF] = struct.unpack_from("<I", table, at + first_name)[0]
        if step == 0:
            break
        at += step
    return found
