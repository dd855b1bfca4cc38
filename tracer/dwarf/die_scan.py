"""The entries of .debug_info that describe functions and structs, read in a pass over all of it.

Format: DWARF 5, section 7.5 (and DWARF 4 and 3, which differ in the unit header). A reader of our own, because
perf's 700,000 entries take pyelftools a minute: here an entry of no interest is skipped by the size of its form.
Other files' parts (dwz, split DWARF) are not followed: names that stand there read as empty.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import IntEnum

from tracer.dwarf.attribute_forms import (
    BY_OFFSET_SIZE,
    EXPRESSION,
    FIXED,
    FLAG_PRESENT,
    IMPLICIT_CONST,
    LINE_STRP,
    REF_ADDR,
    REF_UDATA,
    REFERENCES,
    SDATA,
    SEC_OFFSET,
    STRING,
    STRING_INDICES,
    STRP,
    UDATA,
    number_at,
    skip_form,
)
from tracer.dwarf.leb128 import signed, unsigned
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass

_UNIT_COMPILE, _UNIT_PARTIAL = 1, 3


class Tag(IntEnum):
    """The entries that are kept."""

    FORMAL_PARAMETER = 0x05
    MEMBER = 0x0D
    POINTER = 0x0F
    STRUCTURE = 0x13
    TYPEDEF = 0x16
    INLINED = 0x1D
    BASE = 0x24
    CONST = 0x26
    SUBPROGRAM = 0x2E
    VOLATILE = 0x35
    ATOMIC = 0x47


class DataTag(IntEnum):
    """The entries that are kept where variables and the layout of their types are wanted."""

    ARRAY = 0x01
    CLASS = 0x02
    ENUMERATION = 0x04
    MEMBER = 0x0D
    POINTER = 0x0F
    REFERENCE = 0x10
    STRUCTURE = 0x13
    TYPEDEF = 0x16
    UNION = 0x17
    INHERITANCE = 0x1C
    SUBRANGE = 0x21
    BASE = 0x24
    CONST = 0x26
    VARIABLE = 0x34
    VOLATILE = 0x35
    RESTRICT = 0x37
    ATOMIC = 0x47


class ScopeTag(IntEnum):
    """The entries that are kept where the variables of functions are wanted."""

    FORMAL_PARAMETER = 0x05
    BLOCK = 0x0B
    INLINED = 0x1D
    SUBPROGRAM = 0x2E
    VARIABLE = 0x34


_TAGS = frozenset(Tag)
_DATA_TAGS = frozenset(DataTag)
_SCOPE_TAGS = frozenset(ScopeTag)
_UNITS = (0x11, 0x3C)
_ADDRESS_OPERATION = 0x03
"""DW_OP_addr."""
"""DW_TAG_compile_unit and DW_TAG_partial_unit, of which only where its strings are is of interest."""
_SCOPES = (Tag.SUBPROGRAM, Tag.INLINED)
# DW_AT codes, and the place of each in an entry.
_ATTRIBUTES = {0x03: "name", 0x49: "type", 0x11: "low", 0x38: "offset", 0x31: "origin", 0x3C: "declaration",
               0x47: "origin", 0x0B: "size", 0x3B: "line", 0x59: "line", 0x72: "strings"}  # fmt: skip
_DATA_ATTRIBUTES = {0x03: "name", 0x49: "type", 0x38: "offset", 0x3C: "declaration", 0x47: "origin", 0x0B: "size",
                    0x02: "address", 0x37: "count", 0x2F: "last", 0x72: "strings"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; offsets are into .debug_info, 0 for none."""

    tag: int
    offset: int
    parent: int
    depth: int
    name: str = ""
    type: int = 0
    low: int = 0
    member_offset: int | None = None
    origin: int = 0
    declaration: bool = False
    scope: int = 0
    """The nearest entry around it that is a function or an inlined copy of one."""
    line: int = 0
    """Where it is declared; of an inlined copy, where it is called."""
    size: int = 0
    address: int = 0
    """Of a variable that stands in one place: its link address."""
    count: int | None = None
    """Of a dimension of an array."""


@dataclass
class Unit:
    """The kept entries of one unit, by their offset in the section."""

    offset: int
    entries: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class _Abbreviation:
    tag: int
    has_children: bool
    forms: tuple[tuple[str, int, int], ...]
    """Attribute (empty: of no interest), form, implicit constant."""
    fixed_size: int
    """Of all attributes together; -1 where it varies, or where one is of interest."""


def read_units(image: Image, *, data: bool = False) -> Iterator[Unit]:
    """Yield the units of .debug_info; ends at the first one that makes no sense. `data`: keep DataTags, else Tags."""
    tags: frozenset[int] = _DATA_TAGS if data else _TAGS
    info, abbreviations, *strings = _contents(image)
    tables: dict[int, dict[int, _Abbreviation]] = {}
    at = 0
    while at + 11 <= len(info):
        try:
            header = read_header(info, at)
            if header is None:
                return
            key = header.abbreviations << 1 | (header.offset_size == 8)
            if key not in tables:
                tables[key] = _read_abbreviations(abbreviations, header, tags)
            if header.kind in (_UNIT_COMPILE, _UNIT_PARTIAL):
                yield _Reader(info, header, tables[key], *strings, tags=tags).unit()
        except (IndexError, ValueError, KeyError, struct.error):
            return
        at = header.end


def read_unit(image: Image, offset: int) -> list[Entry]:
    """Return the entries with ScopeTags of the unit that begins at `offset`; empty where it makes no sense."""
    info, abbreviations, *strings = _contents(image)
    try:
        header = read_header(info, offset)
        if header is None:
            return []
        table = _read_abbreviations(abbreviations, header, _SCOPE_TAGS)
        return _Reader(info, header, table, *strings, tags=_SCOPE_TAGS).unit().entries
    except (IndexError, ValueError, KeyError, struct.error):
        return []


def _contents(image: Image) -> tuple[bytes, ...]:
    return tuple(
        bytes(image.contents(section)) if (section := image.section(name)) else b""
        for name in (".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets")
    )


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
        kind, address_size = _UNIT_COMPILE, info[start + 2 + size]
        (abbreviations,) = struct.unpack_from(offset, info, start + 2)
        first = start + 3 + size
    return UnitHeader(at, first, end, kind, abbreviations, size, version) if address_size == 8 else None


def read_headers(info: bytes) -> Iterator[UnitHeader]:
    """Yield the header of each unit that is compiled code; ends at the first one that makes no sense."""
    at = 0
    try:
        while at + 11 <= len(info) and (header := read_header(info, at)) is not None:
            if header.kind == _UNIT_COMPILE:
                yield header
            at = header.end
    except (IndexError, struct.error):
        return


Attributes = list[tuple[int, int, int]]
"""Of one abbreviation: DW_AT code, form, implicit constant."""


def abbreviations(data: bytes, at: int) -> Iterator[tuple[int, int, bool, Attributes]]:
    """Yield code, tag, whether it has children, and attributes of each abbreviation of the table at `at`."""
    while True:
        code, at = unsigned(data, at)
        if not code:
            return
        tag, at = unsigned(data, at)
        has_children, at = bool(data[at]), at + 1
        attributes: Attributes = []
        while True:
            attribute, at = unsigned(data, at)
            form, at = unsigned(data, at)
            implicit = 0
            if form == IMPLICIT_CONST:
                implicit, at = signed(data, at)
            if not attribute and not form:
                break
            attributes.append((attribute, form, implicit))
        yield code, tag, has_children, attributes


def _read_abbreviations(data: bytes, header: UnitHeader, tags: frozenset[int]) -> dict[int, _Abbreviation]:
    table: dict[int, _Abbreviation] = {}
    wanted = _DATA_ATTRIBUTES if tags is _DATA_TAGS else _ATTRIBUTES
    for code, tag, has_children, attributes in abbreviations(data, header.abbreviations):
        known = wanted if tag in tags or tag in _UNITS else {}
        forms = [(known.get(attribute, ""), form, implicit) for attribute, form, implicit in attributes]
        table[code] = _Abbreviation(tag, has_children, tuple(forms), _fixed_size(forms, header.offset_size))
    return table


def _fixed_size(forms: list[tuple[str, int, int]], offset_size: int) -> int:
    total = 0
    for attribute, form, _ in forms:
        if attribute or (form not in FIXED and form not in BY_OFFSET_SIZE):
            return -1
        total += FIXED.get(form, offset_size)
    return total


class _Reader:
    """Reads the entries of one unit."""

    def __init__(
        self, info: bytes, header: UnitHeader, table: dict[int, _Abbreviation], strings: bytes, line_strings: bytes,
        string_offsets: bytes, *, tags: frozenset[int] = _TAGS,
    ) -> None:
        self._tags = tags
        self._info, self._header, self._table = info, header, table
        self._strings, self._line_strings, self._string_offsets = strings, line_strings, string_offsets
        self._first_string = 2 * header.offset_size
        """Where the unit's part of .debug_str_offsets begins."""
        self._skips: dict[int, Callable[[int], int]] = {}

    def unit(self) -> Unit:
        info, table, end = self._info, self._table, self._header.end
        unit = Unit(self._header.offset)
        parents, scopes = [0], [0]
        at = self._header.first
        while at < end:
            start = at
            code = info[at]
            at += 1
            if code >= 0x80:
                code, at = unsigned(info, start)
            if not code:
                parents.pop()
                scopes.pop()
                if not parents:
                    break
                continue
            abbreviation = table[code]
            if abbreviation.fixed_size >= 0 and abbreviation.tag not in self._tags:
                at += abbreviation.fixed_size
            else:
                at = self._read(unit, abbreviation, start, at, parents, scopes[-1])
            if abbreviation.has_children:
                parents.append(start)
                scopes.append(start if abbreviation.tag in _SCOPES else scopes[-1])
        return unit

    def _read(
        self, unit: Unit, abbreviation: _Abbreviation, start: int, at: int, parents: list[int], scope: int
    ) -> int:
        found: dict[str, int | str] = {}
        for attribute, form, implicit in abbreviation.forms:
            if attribute:
                value: int | str
                if attribute == "address":
                    value, at = self._address(at) if form == EXPRESSION else (0, self._skip(form, at))
                else:
                    value, at = self._value(form, implicit, at)
                found[attribute] = value
            else:
                at = self._skip(form, at)
        if abbreviation.tag in _UNITS:
            self._first_string = int(found.get("strings", self._first_string))
        elif abbreviation.tag in self._tags:
            unit.entries.append(_entry(abbreviation.tag, start, parents, scope, found))
        return at

    def _value(self, form: int, implicit: int, at: int) -> tuple[int | str, int]:
        """Return a name, a number, or a reference as an offset into the section; and where it ends."""
        info = self._info
        if form == STRING:
            end = info.index(0, at)
            return info[at:end].decode("utf-8", "replace"), end + 1
        if form in (STRP, LINE_STRP):
            strings = self._strings if form == STRP else self._line_strings
            place = int.from_bytes(info[at : at + self._header.offset_size], "little")
            end = strings.find(b"\0", place)
            return strings[place:end].decode("utf-8", "replace") if end >= 0 else "", at + self._header.offset_size
        if form in STRING_INDICES:
            index, at = number_at(info, at, STRING_INDICES[form])
            return self._indexed_string(index), at
        if form in REFERENCES:
            value, at = number_at(info, at, REFERENCES[form])
            return self._header.offset + value, at
        if form == REF_UDATA:
            value, at = unsigned(info, at)
            return self._header.offset + value, at
        if form == IMPLICIT_CONST:
            return implicit, at
        if form == FLAG_PRESENT:
            return 1, at
        if form in (SDATA, UDATA):
            return unsigned(info, at)
        if size := FIXED.get(form, self._header.offset_size if form in (REF_ADDR, SEC_OFFSET) else 0):
            return number_at(info, at, size)
        return 0, self._skip(form, at)

    def _address(self, at: int) -> tuple[int, int]:
        """Return the address that a location expression gives, 0 for any other; and where it ends."""
        length, at = unsigned(self._info, at)
        is_address = length == 9 and self._info[at] == _ADDRESS_OPERATION
        return int.from_bytes(self._info[at + 1 : at + 9], "little") if is_address else 0, at + length

    def _indexed_string(self, index: int) -> str:
        size = self._header.offset_size
        at = self._first_string + size * index
        place = int.from_bytes(self._string_offsets[at : at + size], "little")
        end = self._strings.find(b"\0", place)
        return self._strings[place:end].decode("utf-8", "replace") if end >= 0 and self._string_offsets else ""

    def _skip(self, form: int, at: int) -> int:
        return skip_form(self._info, form, at, self._header.offset_size)


def _entry(tag: int, start: int, parents: list[int], scope: int, found: dict[str, int | str]) -> Entry:
    offset = found.get("offset")
    return Entry(
        tag, start, parents[-1], len(parents), str(found.get("name", "")), int(found.get("type", 0)),
        int(found.get("low", 0)), int(offset) if offset is not None else None, int(found.get("origin", 0)),
        bool(found.get("declaration", 0)), scope,
        int(found.get("line", 0)), int(found.get("size", 0)), int(found.get("address", 0)), _count(found),
    )  # fmt: skip


def _count(found: dict[str, int | str]) -> int | None:
    if "count" in found:
        return int(found["count"])
    return int(found["last"]) + 1 if "last" in found else None
