"""The copies of inlined functions: their code, where it is entered, and where their parameters are.

Source: DWARF 5, section 3.3.8 (inlined subroutines) and 2.18 (entry addresses).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from tracer.dwarf.die_reader import (
    CONST_VALUE,
    ENTRY_PC,
    FRAME_BASE,
    LOCATION,
    LOW_PC,
    ORIGIN,
    Attribute,
    Details,
    Ranges,
    Sections,
    UnitDetails,
)
from tracer.dwarf.value_expressions import Base, Unlocated, ValuePlace, frame_base_of, value_of
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class InstanceEntry:
    """An inlined copy by its offset in .debug_info, with those around it."""

    unit: int
    offset: int
    around: tuple[int, ...]
    """Offsets of the inlined copies that it is in, the innermost first; last that of the function."""
    parameters: tuple[int, ...]
    """Offsets of the original's parameters."""


@dataclass(frozen=True)
class Parameter:
    """(start, end, place or why there is none) for the code of the copy; empty where it was optimised away."""

    places: tuple[tuple[int, int, ValuePlace | str], ...] = ()

    def at(self, address: int) -> ValuePlace | str:
        """Return where the value is before the instruction at `address` is executed, or why it cannot be had."""
        for start, end, place in self.places:
            if start <= address < end:
                return place
        return "its parameter was optimised away"


@dataclass(frozen=True)
class InlinedInstance:
    """One copy; addresses are link addresses."""

    offset: int
    around: tuple[int, ...]
    entry: int
    ranges: Ranges
    function_ranges: Ranges
    """Code of the function that it is in."""
    parameters: tuple[Parameter, ...]

    def contains(self, address: int) -> bool:
        return any(start <= address < end for start, end in self.ranges)


def read_instances(image: Image, entries: Iterable[InstanceEntry]) -> list[InlinedInstance]:
    """Return the copies that have code; those whose entries make no sense are left out."""
    sections = Sections(image)
    units: dict[int, UnitDetails] = {}
    found = []
    for entry in entries:
        with suppress(ValueError):
            if entry.unit not in units:
                units[entry.unit] = UnitDetails(sections, entry.unit)
            instance = _instance(units[entry.unit], entry)
            if instance is not None:
                found.append(instance)
    return found


def _instance(unit: UnitDetails, entry: InstanceEntry) -> InlinedInstance | None:
    details = unit.entry(entry.offset)
    function = unit.entry(entry.around[-1])
    ranges = unit.ranges(details)
    if not ranges:
        return None
    frame_base = function.attributes.get(FRAME_BASE)
    base = frame_base_of(frame_base.value) if frame_base and isinstance(frame_base.value, bytes) else None
    given = {_reference(child.attributes.get(ORIGIN)): child for child in unit.parameters(details)}
    return InlinedInstance(
        entry.offset,
        entry.around,
        _entry_pc(unit, details, ranges),
        ranges,
        unit.ranges(function),
        tuple(_parameter(unit, given.get(origin), base) for origin in entry.parameters),
    )


def _entry_pc(unit: UnitDetails, details: Details, ranges: Ranges) -> int:
    """Return DW_AT_entry_pc, perhaps a distance from the lowest address; else where the first range begins."""
    given = details.attributes.get(ENTRY_PC)
    if given is None:
        return ranges[0][0]
    if given.is_address:
        return unit.address(given)
    start = unit.address(details.attributes[LOW_PC]) if LOW_PC in details.attributes else ranges[0][0]
    return start + (given.value if isinstance(given.value, int) else 0)


def _reference(attribute: Attribute | None) -> int:
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0


def _parameter(unit: UnitDetails, details: Details | None, frame_base: ValuePlace | None) -> Parameter:
    if details is None:
        return Parameter()
    constant, location = details.attributes.get(CONST_VALUE), details.attributes.get(LOCATION)
    if constant is not None:
        value = constant.value if isinstance(constant.value, int) else int.from_bytes(constant.value, "little")
        return Parameter(((0, (1 << 64) - 1, ValuePlace(Base.CONSTANT, 0, (value,))),))
    return Parameter(tuple(_places(unit, location, frame_base))) if location is not None else Parameter()


def _places(
    unit: UnitDetails, location: Attribute, frame_base: ValuePlace | None
) -> Iterator[tuple[int, int, ValuePlace | str]]:
    expressions: Sequence[tuple[int, int, bytes]] = ()
    with suppress(ValueError):
        expressions = unit.expressions(location)
    for start, end, expression in expressions:
        try:
            yield start, end, value_of(expression, frame_base, unit.indexed_address)
        except Unlocated as reason:
            yield start, end, str(reason)
