"""Single entries of .debug_info with all of their attributes, and the lists of ranges and locations that these name.

Format: DWARF 5, sections 7.5 (entries), 7.25 (range lists), 7.29 (location lists), 7.27 (addresses), and DWARF 4 and
3, whose lists stand in .debug_ranges and .debug_loc. Reading here and there is cheap where reading all is not:
tracer.dwarf.die_scan tells which offsets are worth it. 900 inlined copies of perf and their parameters take 0.3 s
here, and 6 s with pyelftools, which tests compare with.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cached_property

from tracer.dwarf.attribute_forms import (
    ADDRESS,
    ADDRESS_INDICES,
    BLOCKS,
    DATA,
    IMPLICIT_CONST,
    LOCLISTX,
    REF_ADDR,
    REF_UDATA,
    REFERENCES,
    RNGLISTX,
    SDATA,
    SEC_OFFSET,
    UDATA,
    number_at,
    skip_form,
)
from tracer.dwarf.die_scan import Tag
from tracer.dwarf.entry_rows import Attributes, abbreviations
from tracer.dwarf.leb128 import signed, unsigned
from tracer.dwarf.unit_headers import UnitHeader, read_header
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass

LOW_PC, HIGH_PC, LOCATION, CONST_VALUE, ORIGIN, FRAME_BASE, ENTRY_PC, RANGES = (
    0x11, 0x12, 0x02, 0x1C, 0x31, 0x40, 0x52, 0x55,
)  # fmt: skip
_ADDR_BASE, _RNGLISTS_BASE, _LOCLISTS_BASE = 0x73, 0x74, 0x8C
_LAST = (1 << 64) - 1

Ranges = tuple[tuple[int, int], ...]
"""Link addresses [start, end)."""


@dataclass(frozen=True)
class Attribute:
    form: int
    value: int | bytes

    @property
    def is_address(self) -> bool:
        return self.form == ADDRESS or self.form in ADDRESS_INDICES


@dataclass(frozen=True)
class Details:
    offset: int
    tag: int
    has_children: bool
    attributes: Mapping[int, Attribute]
    end: int
    """Where the next entry begins: its first child, if it has any."""


class Sections:
    """The sections of DWARF that entries refer to, each read when it is first needed."""

    def __init__(self, image: Image) -> None:
        self._image = image

    def _contents(self, name: str) -> bytes:
        section = self._image.section(name)
        return bytes(self._image.contents(section)) if section else b""

    @cached_property
    def info(self) -> bytes:
        return self._contents(".debug_info")

    @cached_property
    def abbreviations(self) -> bytes:
        return self._contents(".debug_abbrev")

    @cached_property
    def addresses(self) -> bytes:
        return self._contents(".debug_addr")

    @cached_property
    def range_lists(self) -> bytes:
        return self._contents(".debug_rnglists")

    @cached_property
    def ranges(self) -> bytes:
        return self._contents(".debug_ranges")

    @cached_property
    def location_lists(self) -> bytes:
        return self._contents(".debug_loclists")

    @cached_property
    def locations(self) -> bytes:
        return self._contents(".debug_loc")


class UnitDetails:
    """Reads entries of one unit by their offsets; raises ValueError where the bytes make no sense."""

    def __init__(self, sections: Sections, offset: int) -> None:
        try:
            header = read_header(sections.info, offset)
            if header is None:
                raise ValueError("no unit begins here")
            self._sections = sections
            self._header: UnitHeader = header
            table = abbreviations(sections.abbreviations, header.abbreviations)
            self._table = {code: (tag, children, attributes) for code, tag, children, attributes in table}
        except (IndexError, struct.error) as error:
            raise ValueError(str(error)) from None
        self._bases: dict[int, int] = {}
        unit = self.entry(header.first)
        for attribute in (_ADDR_BASE, _RNGLISTS_BASE, _LOCLISTS_BASE):
            self._bases[attribute] = _number(unit.attributes.get(attribute))
        self._base = self.address(unit.attributes[LOW_PC]) if LOW_PC in unit.attributes else 0

    def entry(self, offset: int) -> Details:
        """Return the entry at `offset` into .debug_info."""
        try:
            code, at = unsigned(self._sections.info, offset)
            tag, has_children, forms = self._table[code]
            attributes, end = self._attributes(forms, at)
        except (IndexError, KeyError, struct.error) as error:
            raise ValueError(f"no entry at {offset:#x}: {error}") from None
        return Details(offset, tag, has_children, attributes, end)

    def parameters(self, parent: Details) -> list[Details]:
        """Return the formal parameters of a function or a copy of one: its first children."""
        found: list[Details] = []
        at = parent.end
        while parent.has_children and self._sections.info[at : at + 1] not in (b"\0", b""):
            child = self.entry(at)
            if child.tag != Tag.FORMAL_PARAMETER or child.has_children:
                break
            found.append(child)
            at = child.end
        return found

    def _attributes(self, forms: Attributes, at: int) -> tuple[dict[int, Attribute], int]:
        found = {}
        for attribute, form, implicit in forms:
            value, at = self._value(form, implicit, at)
            found[attribute] = Attribute(form, value)
        return found, at

    def _value(self, form: int, implicit: int, at: int) -> tuple[int | bytes, int]:
        """Return what stands at `at`, and where it ends: indices unresolved; 0 for strings."""
        info, size = self._sections.info, self._header.offset_size
        if form in DATA or form == ADDRESS:
            return number_at(info, at, DATA.get(form, 8))
        if form == SDATA:
            return signed(info, at)
        if form in (UDATA, LOCLISTX, RNGLISTX):
            return unsigned(info, at)
        if form == IMPLICIT_CONST:
            return implicit, at
        if form in (SEC_OFFSET, REF_ADDR):
            return number_at(info, at, size)
        if form in ADDRESS_INDICES:
            return number_at(info, at, ADDRESS_INDICES[form])
        if form in REFERENCES or form == REF_UDATA:
            value, at = number_at(info, at, REFERENCES.get(form, 0))
            return self._header.offset + value, at
        if form in BLOCKS:
            length, at = number_at(info, at, BLOCKS[form])
            return info[at : at + length], at + length
        return 0, skip_form(info, form, at, size)

    def address(self, attribute: Attribute) -> int:
        """Return the link address that an attribute gives, perhaps by its index."""
        if attribute.form in ADDRESS_INDICES:
            return self.indexed_address(_number(attribute))
        return _number(attribute)

    def indexed_address(self, index: int) -> int:
        """Return entry `index` of the unit's part of .debug_addr; raises ValueError."""
        at = self._bases.get(_ADDR_BASE, 0) + 8 * index
        raw = self._sections.addresses[at : at + 8]
        if len(raw) < 8:
            raise ValueError("an address is missing")
        return int.from_bytes(raw, "little")

    def ranges(self, details: Details) -> Ranges:
        """Return the code of an entry, in the order of its list; raises ValueError."""
        try:
            return tuple((low, high) for low, high in self._ranges(details.attributes) if low < high)
        except (IndexError, struct.error) as error:
            raise ValueError(str(error)) from None

    def _ranges(self, attributes: Mapping[int, Attribute]) -> Iterator[tuple[int, int]]:
        listed = attributes.get(RANGES)
        if listed is not None and self._header.version >= 5:
            at = self._listed(listed, RNGLISTX, _RNGLISTS_BASE, self._sections.range_lists)
            yield from self._range_list(at)
        elif listed is not None:
            for low, high, _ in self._pairs(self._sections.ranges, _number(listed), blocks=False):
                yield low, high
        elif LOW_PC in attributes and HIGH_PC in attributes:
            low, end = self.address(attributes[LOW_PC]), attributes[HIGH_PC]
            yield low, self.address(end) if end.is_address else low + _number(end)

    def _listed(self, attribute: Attribute, indexed: int, base: int, lists: bytes) -> int:
        """Return where in its section a list begins; an index is looked up in the unit's table of offsets."""
        if attribute.form != indexed:
            return _number(attribute)
        size, table = self._header.offset_size, self._bases[base]
        at = table + size * _number(attribute)
        return table + int.from_bytes(lists[at : at + size], "little")

    def _range_list(self, at: int) -> Iterator[tuple[int, int]]:
        for low, high, _, _ in self._entries(self._sections.range_lists, at, blocks=False):
            yield low, high

    def _entries(self, data: bytes, at: int, *, blocks: bool) -> Iterator[tuple[int, int, bytes, int]]:
        """Yield start, end and block of the entries of a list of DWARF 5; those of locations have one more kind."""
        base = self._base
        default = 5 if blocks else -1
        base_address = 6 if blocks else 5
        while True:
            kind, at = data[at], at + 1
            low = high = 0
            if kind == 0:
                return
            if kind in (1, 2, 3):
                first, at = unsigned(data, at)
                low = self.indexed_address(first)
                if kind != 1:
                    second, at = unsigned(data, at)
                    high = self.indexed_address(second) if kind == 2 else low + second
            elif kind == 4:
                first, at = unsigned(data, at)
                second, at = unsigned(data, at)
                low, high = base + first, base + second
            elif kind == default:
                low, high = 0, _LAST
            elif kind in (base_address, base_address + 1, base_address + 2):
                (low,), at = struct.unpack_from("<Q", data, at), at + 8
                if kind == base_address + 1:
                    (high,), at = struct.unpack_from("<Q", data, at), at + 8
                elif kind == base_address + 2:
                    second, at = unsigned(data, at)
                    high = low + second
            elif kind == 9 and blocks:  # DW_LLE_GNU_view_pair
                _, at = unsigned(data, at)
                _, at = unsigned(data, at)
                continue
            else:
                raise ValueError(f"a list has an entry of kind {kind}")
            if kind in (1, base_address):
                base = low
                continue
            block = b""
            if blocks:
                length, at = unsigned(data, at)
                block, at = data[at : at + length], at + length
            yield low, high, block, at

    def _pairs(self, data: bytes, at: int, *, blocks: bool) -> Iterator[tuple[int, int, bytes]]:
        """Yield the entries of a list before DWARF 5."""
        base = self._base
        while True:
            low, high = struct.unpack_from("<QQ", data, at)
            at += 16
            if low == _LAST:
                base = high
                continue
            if not low and not high:
                return
            block = b""
            if blocks:
                (length,) = struct.unpack_from("<H", data, at)
                block, at = data[at + 2 : at + 2 + length], at + 2 + length
            yield base + low, base + high, block

    def expressions(self, attribute: Attribute) -> tuple[tuple[int, int, bytes], ...]:
        """Return (start, end, expression) of a location; one that always holds is from 0 on. Raises ValueError."""
        if isinstance(attribute.value, bytes):
            return ((0, _LAST, attribute.value),)
        try:
            if self._header.version >= 5:
                lists = self._sections.location_lists
                at = self._listed(attribute, LOCLISTX, _LOCLISTS_BASE, lists)
                return tuple((low, high, block) for low, high, block, _ in self._entries(lists, at, blocks=True))
            return tuple(self._pairs(self._sections.locations, attribute.value, blocks=True))
        except (IndexError, struct.error) as error:
            raise ValueError(str(error)) from None


def _number(attribute: Attribute | None) -> int:
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0
