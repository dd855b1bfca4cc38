"""The entries of .debug_info that describe functions and structs, read in a pass over all of it.

Format: DWARF 5, section 7.5 (and DWARF 4 and 3, which differ in the unit header). A reader of our own, because
perf's 700,000 entries take pyelftools a minute: here an entry of no interest is skipped by the size of its form.
Other files' parts (dwz, split DWARF) are not followed: names that stand there read as empty.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import field
from enum import IntEnum

from tracer.dwarf.attribute_forms import (
    DATA,
    EXPRESSION,
    LINE_STRP,
    REF_UDATA,
    REFERENCES,
    SDATA,
    STRING,
    STRING_INDICES,
    STRP,
    UDATA,
    number_at,
    skip_form,
)
from tracer.dwarf.entry_rows import (
    DEPTH,
    ELEMENTS,
    LAST,
    LINE,
    LOW,
    MEMBER_OFFSET,
    NAME,
    NOTHING,
    OFFSET,
    ORIGIN,
    PARENT,
    PLACE,
    SCOPE,
    SIZE,
    STRINGS,
    TYPE,
    Abbreviation,
    Entry,
    read_abbreviations,
)
from tracer.dwarf.leb128 import unsigned
from tracer.dwarf.unit_headers import UNIT_COMPILE, UNIT_PARTIAL, UnitHeader, read_header
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass


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


DATA_SECTIONS = (".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets")
"""All that entries are read from."""
_TAGS = frozenset(Tag)
_DATA_TAGS = frozenset(DataTag)
_SCOPE_TAGS = frozenset(ScopeTag)
_UNITS = (0x11, 0x3C)
"""DW_TAG_compile_unit and DW_TAG_partial_unit, of which only where its strings are is of interest."""
_ADDRESS_OPERATION = 0x03
"""DW_OP_addr."""
_SCOPES = (Tag.SUBPROGRAM, Tag.INLINED)
# DW_AT codes, and the place of each in a row.
_ATTRIBUTES = {0x03: NAME, 0x49: TYPE, 0x11: LOW, 0x38: MEMBER_OFFSET, 0x31: ORIGIN,
               0x47: ORIGIN, 0x0B: SIZE, 0x3B: LINE, 0x59: LINE, 0x72: STRINGS}  # fmt: skip
_DATA_ATTRIBUTES = {0x03: NAME, 0x49: TYPE, 0x38: MEMBER_OFFSET, 0x47: ORIGIN, 0x0B: SIZE,
                    0x02: PLACE, 0x37: ELEMENTS, 0x2F: LAST, 0x72: STRINGS}  # fmt: skip


@dataclass
class Unit:
    """The kept entries of one unit, by their offset in the section."""

    offset: int
    entries: list[Entry] = field(default_factory=list)


def read_units(image: Image, *, data: bool = False) -> Iterator[Unit]:
    """Yield the units of .debug_info; ends at the first one that makes no sense. `data`: keep DataTags, else Tags."""
    tags: frozenset[int] = _DATA_TAGS if data else _TAGS
    info, abbreviations, *strings = _contents(image)
    tables: dict[int, dict[int, Abbreviation]] = {}
    at = 0
    while at + 11 <= len(info):
        try:
            header = read_header(info, at)
            if header is None:
                return
            key = header.abbreviations << 1 | (header.offset_size == 8)
            if key not in tables:
                tables[key] = _read_abbreviations(abbreviations, header, tags)
            if header.kind in (UNIT_COMPILE, UNIT_PARTIAL):
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


def _read_abbreviations(data: bytes, header: UnitHeader, tags: frozenset[int]) -> dict[int, Abbreviation]:
    return read_abbreviations(data, header, tags.union(_UNITS), _DATA_ATTRIBUTES if tags is _DATA_TAGS else _ATTRIBUTES)


def _contents(image: Image) -> tuple[bytes, ...]:
    return tuple(
        bytes(image.contents(section)) if (section := image.section(name)) else b""
        for name in DATA_SECTIONS
    )


class _Reader:
    """Reads the entries of one unit."""

    def __init__(
        self, info: bytes, header: UnitHeader, table: dict[int, Abbreviation], strings: bytes, line_strings: bytes,
        string_offsets: bytes, *, tags: frozenset[int] = _TAGS,
    ) -> None:
        self._tags = tags
        self._info, self._header, self._table = info, header, table
        self._strings, self._line_strings, self._string_offsets = strings, line_strings, string_offsets
        self._first_string = 2 * header.offset_size
        """Where the unit's part of .debug_str_offsets begins."""
        self._names: dict[int, str] = {}
        """Those read from .debug_str, by their place in it."""

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
        self, unit: Unit, abbreviation: Abbreviation, start: int, at: int, parents: list[int], scope: int
    ) -> int:
        row = abbreviation.row.copy()
        for layout, wanted, behind, form in abbreviation.runs:
            if wanted:
                for (place, its_form), value in zip(wanted, layout.unpack_from(self._info, at), strict=True):
                    row[place] = value if its_form in DATA else self._meant(its_form, value)
            at += layout.size
            if behind == PLACE:
                row[behind], at = self._address(at) if form == EXPRESSION else (0, self._skip(form, at))
            elif behind != NOTHING:
                row[behind], at = self._value(form, at)
            elif form:
                at = self._skip(form, at)
        if abbreviation.tag in _UNITS:
            if row[STRINGS] is not None:
                self._first_string = row[STRINGS]
        elif abbreviation.tag in self._tags:
            row[OFFSET], row[PARENT], row[DEPTH], row[SCOPE] = start, parents[-1], len(parents), scope
            if row[ELEMENTS] is None and row[LAST] is not None:
                row[ELEMENTS] = row[LAST] + 1
            unit.entries.append(Entry._make(row[:LAST]))
        return at

    def _meant(self, form: int, value: int) -> int | str:
        """Return what a value of a fixed size means: a name, a number, or an offset into the section."""
        if form in REFERENCES:
            return self._header.offset + value
        if form == STRP:
            known = self._names.get(value)
            if known is None:
                known = self._names[value] = _string(self._strings, value)
            return known
        if form in STRING_INDICES:
            return self._indexed_string(value)
        return _string(self._line_strings, value) if form == LINE_STRP else value

    def _value(self, form: int, at: int) -> tuple[int | str, int]:
        """Return what a value of no fixed size means, and where it ends."""
        info = self._info
        if form == STRING:
            end = info.index(0, at)
            return info[at:end].decode("utf-8", "replace"), end + 1
        if form in STRING_INDICES:
            index, at = number_at(info, at, STRING_INDICES[form])
            return self._indexed_string(index), at
        if form == REF_UDATA:
            value, at = unsigned(info, at)
            return self._header.offset + value, at
        if form in (SDATA, UDATA):
            return unsigned(info, at)
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
        return _string(self._strings, place) if self._string_offsets else ""

    def _skip(self, form: int, at: int) -> int:
        return skip_form(self._info, form, at, self._header.offset_size)


def _string(strings: bytes, place: int) -> str:
    end = strings.find(b"\0", place)
    return strings[place:end].decode("utf-8", "replace") if end >= 0 else ""
