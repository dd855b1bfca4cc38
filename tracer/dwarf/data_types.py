"""Variables and the layout of types, asked by place: what is at this offset, which struct is like this."""

from __future__ import annotations

from collections.abc import Callable

from tracer.dwarf.data_entries import DataEntries, data_entries, no_entries
from tracer.dwarf.die_scan import DataTag
from tracer.dwarf.entry_rows import Entry
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass

_AGGREGATES = (DataTag.STRUCTURE, DataTag.CLASS, DataTag.UNION)
_THROUGH = (DataTag.TYPEDEF, DataTag.CONST, DataTag.VOLATILE, DataTag.ATOMIC, DataTag.RESTRICT)
_POINTERS = (DataTag.POINTER, DataTag.REFERENCE)
_WORDS = {DataTag.STRUCTURE: "struct ", DataTag.UNION: "union "}
_POINTER_BYTES, _LONGEST_CHAIN, _DEEPEST = 8, 16, 32
MOST_BYTES = 32 << 20
"""Of .debug_info: the first reading takes six seconds for so many."""


@dataclass(frozen=True)
class Place:
    """What stands at an offset of a type. `path`: the way to it, `.host.kmaps` or `[].next`."""

    path: str
    is_pointer: bool
    pointee_bytes: int
    """Size of what it points to; 0 where that is not known (`void *`, a struct of another unit's)."""
    pointee: str = ""


@dataclass(frozen=True)
class Found:
    """A struct or class that is as asked for."""

    name: str
    member: str


class DataTypes:
    """Of one binary; empty where it has no DWARF, or more than MOST_BYTES."""

    def __init__(self, image: Image, find: Callable[[Image], DataEntries] = data_entries) -> None:
        self._sizes: dict[int, int] = {}
        self._structs: dict[int, list[tuple[str, Entry]]] = {}
        section = image.section(".debug_info")
        self.is_known = section is not None and section.size <= MOST_BYTES
        self._entries = find(image) if self.is_known else no_entries()

    def variable_at(self, address: int) -> tuple[str, str] | None:
        """Return the variable that covers a link address, and the way from it to what stands there."""
        entry = self._entries.variable_before(address)
        if entry is None:
            return None
        declared = self._entries.at(entry.origin)
        name, type_ = entry.name, entry.type
        if declared is not None:
            name, type_ = name or declared.name, type_ or declared.type
        path = self.path_within(type_, address - entry.address)
        return (name, path) if name and path is not None else None

    def structs_like(self, size: int, offset: int, pointee_bytes: int) -> list[Found]:
        """Return each struct and class, once by name, that has this size and at this offset a pointer to what has so
        many bytes (0: to anything)."""
        found: dict[str, Found] = {}
        for name, entry in self._structs_of(size):
            place = self.place(entry.offset, offset)
            if place is not None and place.is_pointer and (not pointee_bytes or place.pointee_bytes == pointee_bytes):
                word = _WORDS.get(DataTag(entry.tag), "") if entry.name else ""
                found.setdefault(name, Found(word + name, place.path.removeprefix(".")))
        return list(found.values())

    def _structs_of(self, size: int) -> list[tuple[str, Entry]]:
        """Return the structs and classes of a size, with their names; one of those that have the same members, since
        each unit that uses a struct describes it."""
        if size not in self._structs:
            known: dict[tuple[object, ...], tuple[str, Entry]] = {}
            for entry in self._entries.of_size(size):
                name = entry.name or self._entries.typedefs.get(entry.offset, "")
                if name and entry.tag != DataTag.UNION:
                    parts = [(part.name, part.member_offset) for part in self._entries.parts_of(entry.offset)]
                    known.setdefault((name, *parts), (name, entry))
            self._structs[size] = list(known.values())
        return self._structs[size]

    def member(self, type_name: str, offset: int) -> str:
        """Return the way to what stands at an offset of a struct or class; empty where that is not known."""
        entry = self._entries.definitions.get(type_name)
        place = self.place(entry, offset) if entry is not None else None
        return place.path.removeprefix(".") if place is not None else ""

    def path_within(self, type_: int, offset: int) -> str | None:
        """Return the way to what stands at an offset of a variable of a type; None outside of it."""
        if not 0 <= offset < max(self._size(type_), 1):
            return None
        place = self.place(type_, offset)
        return place.path if place is not None else ""

    def place(self, type_: int, offset: int) -> Place | None:
        """Return what stands at an offset of a type, down to a pointer or a plain value; None outside of it, and where
        several members of a union would do."""
        path = ""
        for _ in range(_DEEPEST):
            entry = self._resolved(type_)
            if entry is None:
                return None
            if entry.tag in _POINTERS:
                return self._pointer(path, entry) if offset == 0 else None
            if entry.tag == DataTag.ARRAY:
                size = self._size(entry.type)
                if not size:
                    return None
                path, type_, offset = path + "[]", entry.type, offset % size
                continue
            if entry.tag not in _AGGREGATES:
                return Place(path, False, 0)
            part = self._part(entry, offset)
            if part is None:
                return None
            path += f".{part.name}" if part.name else ""
            type_, offset = part.type, offset - (part.member_offset or 0)
        return None

    def _part(self, entry: Entry, offset: int) -> Entry | None:
        """Return the member that an offset is in; of several, as in a union, the only one with a pointer there."""
        parts = [
            part for part in self._entries.parts_of(self._defined(entry).offset)
            if part.tag != DataTag.SUBRANGE and 0 <= offset - (part.member_offset or 0) < self._size(part.type)
        ]
        if len(parts) <= 1:
            return parts[0] if parts else None
        pointing = [p for p in parts if (at := self.place(p.type, offset - (p.member_offset or 0))) and at.is_pointer]
        return pointing[0] if len(pointing) == 1 else None

    def _pointer(self, path: str, entry: Entry) -> Place:
        target = self._resolved(entry.type)
        if target is None or target.tag in _POINTERS:
            return Place(path, True, 0)
        target = self._defined(target)
        return Place(path, True, target.size, target.name)

    def _defined(self, entry: Entry) -> Entry:
        """Return the definition of a struct that is only declared in its unit."""
        if entry.size or entry.tag not in _AGGREGATES or not entry.name:
            return entry
        return self._entries.at(self._entries.definitions.get(entry.name, 0)) or entry

    def _resolved(self, type_: int) -> Entry | None:
        for _ in range(_LONGEST_CHAIN):
            entry = self._entries.at(type_)
            if entry is None or entry.tag not in _THROUGH:
                return entry
            type_ = entry.type
        return None

    def _size(self, type_: int, depth: int = 0) -> int:
        if type_ not in self._sizes:
            self._sizes[type_] = 0  # of a type that holds itself, which is damaged
            self._sizes[type_] = self._measured(type_, depth)
        return self._sizes[type_]

    def _measured(self, type_: int, depth: int) -> int:
        entry = self._resolved(type_)
        if entry is None or depth > _DEEPEST:
            return 0
        if entry.tag in _POINTERS:
            return _POINTER_BYTES
        if entry.tag != DataTag.ARRAY:
            return self._defined(entry).size
        if entry.size:
            return entry.size
        size = self._size(entry.type, depth + 1)
        for dimension in self._entries.parts_of(entry.offset):
            size *= dimension.elements or 0
        return size
