"""Entries of .debug_info, and what an abbreviation says of how to read them: steps that fill a row for an Entry.

Format: DWARF 5, section 7.5.3. Values of fixed sizes that follow each other are taken in one step.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tracer.dwarf.attribute_forms import (
    BY_OFFSET_SIZE,
    FIXED,
    IMPLICIT_CONST,
    LINE_STRP,
    STRING,
    STRING_INDICES,
    STRP,
)
from tracer.dwarf.leb128 import signed, unsigned
from tracer.dwarf.unit_headers import UnitHeader
from tracer.late_dataclasses import dataclass

_NAME_FORMS = frozenset((STRING, STRP, LINE_STRP, *STRING_INDICES))
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Of `struct`, by size."""


class Entry(NamedTuple):
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
    scope: int = 0
    """The nearest entry around it that is a function or an inlined copy of one."""
    line: int = 0
    """Where it is declared; of an inlined copy, where it is called."""
    size: int = 0
    address: int = 0
    """Of a variable that stands in one place: its link address."""
    elements: int | None = None
    """Of a dimension of an array."""


# Where a row has what: an Entry, and behind it what becomes one of its fields.
(TAG, OFFSET, PARENT, DEPTH, NAME, TYPE, LOW, MEMBER_OFFSET, ORIGIN, SCOPE, LINE, SIZE, PLACE,
 ELEMENTS, LAST, STRINGS) = range(16)  # fmt: skip
_BLANK = (*Entry(0, 0, 0, 0), None, None)
NOTHING = -1


class Run(NamedTuple):
    """Attributes of fixed sizes that follow each other, and the one behind them."""

    layout: struct.Struct
    wanted: tuple[tuple[int, int], ...]
    """Place in a row, and form, of each value that `layout` gives."""
    place: int = NOTHING
    """Of the one behind."""
    form: int = 0
    """0: there is none."""


@dataclass(frozen=True)
class Abbreviation:
    tag: int
    has_children: bool
    runs: tuple[Run, ...]
    row: list[Any]
    """As all its entries have it."""
    fixed_size: int
    """Of all attributes together; -1 where it varies, or where one is of interest."""


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


def read_abbreviations(
    data: bytes, header: UnitHeader, kept: Container[int], attributes_of: Mapping[int, int]
) -> dict[int, Abbreviation]:
    """Return the abbreviations of a unit by their codes. `kept`: tags of which attributes are wanted, those that
    `attributes_of` gives a place in a row."""
    table: dict[int, Abbreviation] = {}
    for code, tag, has_children, attributes in abbreviations(data, header.abbreviations):
        known = attributes_of if tag in kept else {}
        row, forms = [tag, *_BLANK[1:]], []
        for attribute, form, implicit in attributes:
            place = known.get(attribute, NOTHING)
            if (form in _NAME_FORMS) != (place == NAME):
                place = NOTHING  # damaged: a name that is a number, or the other way round
            if place != NOTHING and form == IMPLICIT_CONST:
                row[place] = implicit
            forms.append((place, form))
        runs = _runs(tuple(forms), header.offset_size)
        is_plain = len(runs) == 1 and not runs[0].wanted and not runs[0].form
        table[code] = Abbreviation(tag, has_children, runs, row, runs[0].layout.size if is_plain else -1)
    return table


@lru_cache(maxsize=4096)
def _runs(forms: tuple[tuple[int, int], ...], offset_size: int) -> tuple[Run, ...]:
    """Return how to read attributes, of which each has a place in a row and a form, in as few steps as it takes."""
    runs: list[Run] = []
    codes, wanted = "<", list[tuple[int, int]]()
    for place, form in forms:
        size = FIXED.get(form, offset_size if form in BY_OFFSET_SIZE else -1)
        is_value = place not in (NOTHING, PLACE) and size > 0
        if size < 0 or (is_value and size not in _CODES):
            runs.append(Run(struct.Struct(codes), tuple(wanted), place, form))
            codes, wanted = "<", []
        elif is_value:
            codes += _CODES[size]
            wanted.append((place, form))
        elif size:
            codes += f"{size}x"
    if codes != "<" or not runs:
        runs.append(Run(struct.Struct(codes), tuple(wanted)))
    return tuple(runs)
