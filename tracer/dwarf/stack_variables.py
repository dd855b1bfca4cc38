"""Variables of functions by their place in a frame.

Source: DWARF 5, sections 3.3 (functions, blocks, inlined copies), 3.3.5 (frame bases) and 2.6 (locations).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from tracer.dwarf.data_types import DataTypes
from tracer.dwarf.die_reader import FRAME_BASE, LOCATION, Details, Ranges, Sections, UnitDetails
from tracer.dwarf.die_scan import ScopeTag, read_unit
from tracer.dwarf.entry_rows import Entry
from tracer.dwarf.unit_headers import read_headers
from tracer.dwarf.value_expressions import Base, Unlocated, ValuePlace, frame_base_of, value_of
from tracer.elf.image import Image

_SAVED_BELOW_CFA = -16
"""Where the frame pointer of a function that keeps one points to: the caller's, saved behind the return address."""
_VARIABLES = (ScopeTag.VARIABLE, ScopeTag.FORMAL_PARAMETER)


class Registers(Protocol):
    """Registers of frames, by DWARF's numbers, and where they point, in bytes from the canonical frame address."""

    def at(self, address: int) -> tuple[int, int] | None:
        """Return the register by which that address is found where the function is at `address`."""
        ...

    def in_body(self, address: int, function: tuple[int, int]) -> tuple[int, int] | None:
        """Return the stack pointer as it is behind the prologue of `function`, of which `address` is."""
        ...


class StackVariables:
    """Of one binary; its units are read when code of theirs is asked for."""

    def __init__(self, image: Image, types: DataTypes, frame_pointer: int, registers: Registers) -> None:
        """`types`: of the same binary. `frame_pointer`: DWARF's number of the register."""
        self._image, self._types, self._frame_pointer, self._registers = image, types, frame_pointer, registers
        self._sections = Sections(image)
        self._units: dict[int, UnitDetails | None] = {}
        self._entries: dict[int, dict[int, Entry]] = {}

    def at(self, address: int, offset: int) -> tuple[str, str] | None:
        """Return the variable that is `offset` bytes from the canonical frame address while the function runs that has
        the link address `address`, and the way from the variable to what stands there; None where none is known, and
        where several may be: what two have for themselves, one after the other, DWARF may give to both all the time."""
        number = self._unit_of(address)
        unit = self._unit(number) if number is not None else None
        if number is None or unit is None:
            return None
        entries = self._entries_of(number)
        found = {
            self._covers(unit, entries, entry, address, offset)
            for entry in entries.values() if entry.tag in _VARIABLES and self._runs_in(unit, entries, entry, address)
        } - {None}  # fmt: skip
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _code(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Where the code of units begins, in order, and of each where it ends and whose it is."""
        ranges: list[tuple[int, int, int]] = []
        for header in read_headers(self._sections.info):
            unit = self._unit(header.offset)
            with suppress(ValueError):
                ranges += [(*code, header.offset) for code in (unit.ranges(unit.entry(header.first)) if unit else ())]
        ranges.sort()
        return [start for start, _, _ in ranges], [(end, offset) for _, end, offset in ranges]

    def _unit_of(self, address: int) -> int | None:
        starts, ends = self._code
        index = bisect_right(starts, address) - 1
        return ends[index][1] if index >= 0 and address < ends[index][0] else None

    def _unit(self, offset: int) -> UnitDetails | None:
        if offset not in self._units:
            self._units[offset] = None
            with suppress(ValueError):
                self._units[offset] = UnitDetails(self._sections, offset)
        return self._units[offset]

    def _entries_of(self, unit: int) -> dict[int, Entry]:
        if unit not in self._entries:
            self._entries[unit] = {entry.offset: entry for entry in read_unit(self._image, unit)}
        return self._entries[unit]

    def _runs_in(self, unit: UnitDetails, entries: Mapping[int, Entry], entry: Entry, address: int) -> bool:
        """Tell whether a variable is of the function, and in all the blocks and copies, that `address` is in."""
        around = list(_around(entries, entry))
        if not around or around[-1].tag != ScopeTag.SUBPROGRAM:
            return False
        with suppress(ValueError):
            return all(_has(unit, unit.entry(scope.offset), address) for scope in reversed(around))
        return False

    def _covers(
        self, unit: UnitDetails, entries: Mapping[int, Entry], entry: Entry, address: int, offset: int
    ) -> tuple[str, str] | None:
        *_, function = _around(entries, entry)
        try:
            start = self._start(unit, unit.entry(entry.offset), unit.entry(function.offset), address)
        except ValueError:
            return None
        if start is None or offset < start:
            return None
        origin = entries.get(entry.origin)
        name = entry.name or (origin.name if origin else "")
        path = self._types.path_within(entry.type or (origin.type if origin else 0), offset - start)
        return (name, path) if name and path is not None else None

    def _start(self, unit: UnitDetails, variable: Details, function: Details, address: int) -> int | None:
        """Return where a variable begins, from the canonical frame address; None where it is elsewhere. Raises
        ValueError where the bytes make no sense."""
        location, base = variable.attributes.get(LOCATION), function.attributes.get(FRAME_BASE)
        if location is None:
            return None
        frame_base = frame_base_of(base.value) if base is not None and isinstance(base.value, bytes) else None
        for low, high, expression in unit.expressions(location):
            if low <= address < high:
                with suppress(Unlocated):
                    place = value_of(expression, frame_base, unit.indexed_address)
                    if len(place.offsets) != 2 or place.offsets[1] != 0:
                        return None  # in a register, or behind a pointer
                    start = self._from_cfa(place, frame_base, address, unit.ranges(function))
                    return place.offsets[0] + start if start is not None else None
        return None

    def _from_cfa(
        self, place: ValuePlace, frame_base: ValuePlace | None, address: int, code: Ranges
    ) -> int | None:
        """Return where the base of a place is, from the canonical frame address."""
        if place.base is Base.FRAME:
            return 0
        if place.base is not Base.REGISTER:
            return None
        is_frame_base = frame_base == replace(place, offsets=(0,))
        if is_frame_base and place.register != self._frame_pointer:
            function = next(part for part in code if part[0] <= address < part[1])
            known = self._registers.in_body(address, function)
        else:
            known = self._registers.at(address)
            if known is None and is_frame_base:
                return _SAVED_BELOW_CFA
        return known[1] if known is not None and known[0] == place.register else None


def _around(entries: Mapping[int, Entry], entry: Entry) -> Iterator[Entry]:
    """Yield the blocks and copies that a variable is in, the innermost first, and the function last."""
    scope = entries.get(entry.parent)
    while scope is not None and scope.tag not in _VARIABLES:
        yield scope
        if scope.tag == ScopeTag.SUBPROGRAM:
            return
        scope = entries.get(scope.parent)


def _has(unit: UnitDetails, scope: Details, address: int) -> bool:
    """A block without code of its own is its parent's."""
    ranges = unit.ranges(scope)
    if not ranges:
        return scope.tag == ScopeTag.BLOCK
    return any(start <= address < end for start, end in ranges)
