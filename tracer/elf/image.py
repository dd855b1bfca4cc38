"""An ELF file's headers, read in well under a millisecond.

Layouts: System V ABI, chapters 4 and 5 (ELF-64), and the gABI's notes. Our own reader, since a trace
opens hundreds of binaries before the target may start; so is that of DWARF (entry_details).
"""

from __future__ import annotations

import os
import struct
import zlib
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any

from tracer.elf.file_bytes import FileBytes
from tracer.errors import CannotRead, UnsuitableTarget
from tracer.files.plain_file import open_plain
from tracer.late_dataclasses import dataclass

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS, PT_GNU_EH_FRAME = 1, 2, 3, 4, 7, 0x6474E550
PF_X, PF_W, PF_R = 1, 2, 4
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
DT_NULL, DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH = 0, 1, 5, 10, 14, 15, 29
DT_FLAGS_1, DT_AUXILIARY, DT_FILTER = 0x6FFFFFFB, 0x7FFFFFFD, 0x7FFFFFFF
DF_1_NODEFLIB = 0x800
NT_GNU_BUILD_ID = 3

_MOST_DYNAMIC = 1 << 14
_LARGEST_UNPACKED, _LEAST_LIMIT, _MOST_EXPANSION = 1 << 29, 1 << 20, 100
"""Of a compressed section: debug information shrinks to a third or a tenth; what says more is made to fill memory."""
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class Segment:
    type: int
    flags: int
    file_offset: int
    link_address: int
    file_size: int
    memory_size: int
    alignment: int = 1


@dataclass(frozen=True)
class Section:
    index: int
    name: str
    type: int
    flags: int
    link_address: int
    file_offset: int
    size: int
    link: int
    entry_size: int
    info: int = 0


class Image:
    """An opened 64-bit little-endian ELF file, or an ELF image held in memory.

    Raises UnsuitableTarget where the bytes are no such ELF, CannotRead where the file cannot be opened.
    Damaged tables read as empty: a miss is not an error.
    """

    def __init__(self, data: bytes | FileBytes, path: str = "") -> None:
        self.path = path
        self.data = data if isinstance(data, FileBytes) else memoryview(data)
        if len(self.data) < 64 or bytes(self.data[:4]) != b"\x7fELF":
            raise UnsuitableTarget(f"{path or 'image'} is not an ELF file")
        kind, order = self.unpack("<BB", 4)
        if kind != 2:
            raise UnsuitableTarget(f"{path or 'image'} is a 32-bit program")
        if order != 1:
            raise UnsuitableTarget(f"{path or 'image'} is big-endian")
        self.type, self.machine = self.unpack("<HH", 16)
        self.entry, self._phoff, self._shoff = self.unpack("<QQQ", 24)
        self._phentsize, self._phnum, self._shentsize, self._shnum, self._shstrndx = self.unpack("<HHHHH", 54)

    @classmethod
    def open(cls, path: str | os.PathLike[str], name: str | None = None) -> Image:
        """Open the plain file at `path`; `name` is what errors call it."""
        try:
            fd = open_plain(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRead(f"cannot read {name or path}: {reason}", "check the path and its permissions") from None
        data = FileBytes(fd)
        try:
            return cls(data, str(name or path))
        except BaseException:
            data.close()
            raise

    def unpack(self, form: str, at: int) -> tuple[Any, ...]:
        """Return what stands at a file offset; raises struct.error behind the end."""
        return struct.unpack(form, self.data[at : at + struct.calcsize(form)])

    def close(self) -> None:
        if isinstance(self.data, FileBytes):
            self.data.close()
        else:
            self.data.release()

    def __enter__(self) -> Image:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        found = []
        for i in range(self._phnum):
            at = self._phoff + i * self._phentsize
            if at + _PROGRAM_HEADER.size > len(self.data):
                break
            type_, flags, offset, address, _, file_size, memory_size, alignment = _PROGRAM_HEADER.unpack(
                self.data[at : at + _PROGRAM_HEADER.size]
            )
            found.append(Segment(type_, flags, offset, address, file_size, memory_size, alignment))
        return tuple(found)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Return the section headers; empty where they are stripped or damaged."""
        count = self._shnum
        if self._shoff == 0 or self._shentsize < _SECTION_HEADER.size or self._shoff + 64 > len(self.data):
            return ()
        if count == 0:  # more than 0xff00 sections: the count is in the first header
            count = min(self.unpack(_SECTION_HEADER.format, self._shoff)[5], 1 << 20)
        raw = []
        for i in range(count):
            at = self._shoff + i * self._shentsize
            if at + _SECTION_HEADER.size > len(self.data):
                return ()
            raw.append(_SECTION_HEADER.unpack(self.data[at : at + _SECTION_HEADER.size]))
        names_index = self._shstrndx if self._shstrndx != 0xFFFF else (raw[0][6] if raw else 0)
        names = (raw[names_index][4], raw[names_index][5]) if names_index < len(raw) else (0, 0)
        return tuple(
            Section(i, self._string(names, r[0]), r[1], r[2], r[3], r[4], r[5], r[6], r[9], r[7])
            for i, r in enumerate(raw)
        )

    def _string(self, table: tuple[int, int], offset: int) -> str:
        start, end = table[0] + offset, min(table[0] + table[1], len(self.data))
        if not 0 <= start < end:
            return ""
        piece = bytes(self.data[start : min(end, start + 4096)])
        return piece.split(b"\0", 1)[0].decode("utf-8", "replace")

    def header_offset(self, index: int) -> int:
        """Return where the header of a section stands."""
        return int(self._shoff + index * self._shentsize)

    def section(self, name: str) -> Section | None:
        return next((s for s in self.sections if s.name == name), None)

    def contents(self, section: Section) -> memoryview:
        """Return a section's bytes, decompressed; empty for NOBITS and damaged ones."""
        if section.type == SHT_NOBITS or section.file_offset + section.size > len(self.data):
            return memoryview(b"")
        raw = self.data[section.file_offset : section.file_offset + section.size]
        if not section.flags & SHF_COMPRESSED or len(raw) < 24:
            return raw
        kind, _, size = struct.unpack_from("<IIQ", raw, 0)
        if kind != 1:
            return memoryview(b"")
        if size > min(_LARGEST_UNPACKED, _LEAST_LIMIT + _MOST_EXPANSION * len(raw)):
            return memoryview(b"")
        try:
            return memoryview(zlib.decompressobj().decompress(raw[24:], max_length=size))
        except (zlib.error, OverflowError):
            return memoryview(b"")

    @cached_property
    def build_id(self) -> str | None:
        """Return the GNU build id as hex digits."""
        for segment in self.segments:
            if segment.type != PT_NOTE:
                continue
            at, end = segment.file_offset, min(segment.file_offset + segment.file_size, len(self.data))
            while at + 12 <= end:
                name_size, size, kind = self.unpack("<III", at)
                body = at + 12 + (name_size + 3 & ~3)
                named_gnu = name_size == 4 and bytes(self.data[at + 12 : at + 16]) == b"GNU\0"
                if kind == NT_GNU_BUILD_ID and named_gnu and body + size <= end:
                    return bytes(self.data[body : body + size]).hex()
                at = body + (size + 3 & ~3)
        return None

    @cached_property
    def interpreter(self) -> str | None:
        """Return the path of the dynamic loader (PT_INTERP); None for libraries and static programs."""
        for segment in self.segments:
            if segment.type == PT_INTERP:
                return self._string((segment.file_offset, segment.file_size), 0)
        return None

    @cached_property
    def _dynamic(self) -> tuple[tuple[int, int], ...]:
        for segment in self.segments:
            if segment.type == PT_DYNAMIC:
                end = min(segment.file_offset + segment.file_size, len(self.data)) - 15
                places = range(segment.file_offset, min(end, segment.file_offset + 16 * _MOST_DYNAMIC), 16)
                pairs = (self.unpack("<QQ", at) for at in places)
                return tuple(takewhile(lambda pair: pair[0] != DT_NULL, pairs))
        return ()

    def _dynamic_strings(self, tag: int) -> tuple[str, ...]:
        values = dict(reversed(self._dynamic))
        offset = self.file_offset_of(values.get(DT_STRTAB, 0))
        if offset is None:
            return ()
        return tuple(self._string((offset, values.get(DT_STRSZ, 0)), value) for t, value in self._dynamic if t == tag)

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the names of DT_NEEDED."""
        return self._dynamic_strings(DT_NEEDED)

    @property
    def filtees(self) -> tuple[str, ...]:
        """Return the libraries that stand in for this one, which are loaded with it (DT_FILTER, DT_AUXILIARY)."""
        return (*self._dynamic_strings(DT_FILTER), *self._dynamic_strings(DT_AUXILIARY))

    @property
    def runpath(self) -> str | None:
        """Return where the loader looks for what this binary needs (DT_RUNPATH)."""
        return next(iter(self._dynamic_strings(DT_RUNPATH)), None)

    @property
    def rpath(self) -> str | None:
        """Return where the loader looks for what this binary and those that it loads need; a runpath overrides it."""
        return next(iter(self._dynamic_strings(DT_RPATH)), None) if self.runpath is None else None

    @property
    def avoids_default_folders(self) -> bool:
        return any(tag == DT_FLAGS_1 and value & DF_1_NODEFLIB for tag, value in self._dynamic)

    @property
    def soname(self) -> str | None:
        return next(iter(self._dynamic_strings(DT_SONAME)), None)

    def file_offset_of(self, link_address: int) -> int | None:
        """Return where in the file a link address stands, or None outside every loaded segment."""
        for s in self.segments:
            if s.type == PT_LOAD and s.link_address <= link_address < s.link_address + s.file_size:
                return link_address - s.link_address + s.file_offset
        return None

    def bytes_at(self, link_address: int, size: int) -> bytes:
        """Return what the file has at a link address, which may be less; nothing outside every loaded segment."""
        offset = self.file_offset_of(link_address)
        return b"" if offset is None else bytes(self.data[offset : offset + size])

    def is_code(self, link_address: int) -> bool:
        """Tell whether a link address is in what is loaded as code; a damaged file may point elsewhere."""
        return any(
            s.type == PT_LOAD and s.flags & PF_X and s.link_address <= link_address < s.link_address + s.file_size
            for s in self.segments
        )

    def link_address_of(self, file_offset: int, executable: bool = True) -> int | None:
        """Return the link address of a file offset; executable segments first where two overlap in a page."""
        for s in sorted(self.segments, key=lambda s: bool(s.flags & PF_X) != executable):
            if s.type == PT_LOAD and s.file_offset <= file_offset < s.file_offset + s.file_size:
                return file_offset - s.file_offset + s.link_address
        return None

    @property
    def name(self) -> str:
        return Path(self.path).name
