"""Variables and the layout of types, asked by place: what is at this offset, which struct is like this."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from tracer.dwarf.die_scan import DataTag, Entry, read_units
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass

_AGGREGATES = (DataTag.STRUCTURE, DataTag.CLASS, DataTag.UNION)
_THROUGH = (DataTag.TYPEDEF, DataTag.CONST, DataTag.VOLATILE, DataTag.ATOMIC, DataTag.RESTRICT)
_POINTERS = (DataTag.POINTER, DataTag.REFERENCE)
_WORDS = {DataTag.STRUCTURE: "struct ", DataTag.UNION: "union "}
_POINTER_BYTES, _LONGEST_CHAIN, _DEEPEST = 8, 16, 32
MOST_BYTES = 32 << 20
"""Of .debug_info: a reading takes four seconds for so many."""


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

    def __init__(self, image: Image) -> None:
        self._types: dict[int, Entry] = {}
        self._parts: defaultdict[int, list[Entry]] = defaultdict(list)
        self._variables: list[tuple[int, Entry]] = []
        self._by_size: defaultdict[int, list[Entry]] = defaultdict(list)
        self._definitions: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        section = image.section(".debug_info")
        self.is_known = section is not None and section.size <= MOST_BYTES
        if self.is_known:
            self._read(image)

    def _read(self, image: Image) -> None:
        typedefs: dict[int, str] = {}
        for unit in read_units(image, data=True):
            for entry in unit.entries:
                if entry.tag in (DataTag.MEMBER, DataTag.INHERITANCE, DataTag.SUBRANGE):
                    self._parts[entry.parent].append(entry)
                elif entry.tag == DataTag.VARIABLE:
                    if entry.address:
                        self._variables.append((entry.address, entry))
                    elif entry.name:
                        self._types[entry.offset] = entry  # what a definition elsewhere names as its declaration
                else:
                    self._types[entry.offset] = entry
                    if entry.tag == DataTag.TYPEDEF:
                        typedefs.setdefault(entry.type, entry.name)
                    if entry.tag in _AGGREGATES and entry.size:
                        self._by_size[entry.size].append(entry)
                        if entry.name:
                            self._definitions.setdefault(entry.name, entry.offset)
        self._typedefs = typedefs
        self._variables.sort(key=lambda pair: pair[0])

    def variable_at(self, address: int) -> tuple[str, str] | None:
        """Return the variable that covers a link address, and the way from it to what stands there."""
        index = bisect_right(self._variables, address, key=lambda pair: pair[0]) - 1
        if index < 0:
            return None
        start, entry = self._variables[index]
        declared = self._types.get(entry.origin)
        name, type_ = entry.name, entry.type
        if declared is not None:
            name, type_ = name or declared.name, type_ or declared.type
        path = self.path_within(type_, address - start)
        return (name, path) if name and path is not None else None

    def structs_like(self, size: int, offset: int, pointee_bytes: int) -> list[Found]:
        """Return each struct and class, once by name, that has this size and at this offset a pointer to what has so
        many bytes (0: to anything)."""
        found: dict[str, Found] = {}
        for entry in self._by_size.get(size, ()):
            name = entry.name or self._typedefs.get(entry.offset, "")
            if not name or entry.tag == DataTag.UNION:
                continue
            place = self.place(entry.offset, offset)
            if place is not None and place.is_pointer and (not pointee_bytes or place.pointee_bytes == pointee_bytes):
                word = _WORDS.get(DataTag(entry.tag), "") if entry.name else ""
                found.setdefault(name, Found(word + name, place.path.removeprefix(".")))
        return list(found.values())

    def member(self, type_name: str, offset: int) -> str:
        """Return the way to what stands at an offset of a struct or class; empty where that is not known."""
        entry = self._definitions.get(type_name)
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
            part for part in self._parts.get(self._defined(entry).offset, ())
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
        return self._types.get(self._definitions.get(entry.name, 0), entry)

    def _resolved(self, type_: int) -> Entry | None:
        for _ in range(_LONGEST_CHAIN):
            entry = self._types.get(type_)
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
        for dimension in self._parts.get(entry.offset, ()):
            size *= dimension.count or 0
        return size
