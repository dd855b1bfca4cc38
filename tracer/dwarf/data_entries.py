"""Entries of .debug_info that say how data lie, as columns, and kept on disk: to read them takes a second for 6 MB."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.dwarf.die_scan import DATA_SECTIONS, DataTag, read_units
from tracer.dwarf.entry_rows import Entry
from tracer.elf.image import Image
from tracer.files.cache_folder import cache_directory
from tracer.files.sealed_files import digest, name_of, read_sealed, write_sealed
from tracer.model.distinct_values import is_any_of

LIMIT_BYTES = 64 << 20
SUFFIX = ".types"
_NUMBERS = ("tag", "offset", "parent", "type", "member_offset", "origin", "size", "address", "elements")
_MAY_LACK = ("member_offset", "elements")
"""These are kept with 1 added, 0: there is none."""
_MOST = 1 << 63
_PARTS = (DataTag.MEMBER, DataTag.INHERITANCE, DataTag.SUBRANGE)
_AGGREGATES = (DataTag.STRUCTURE, DataTag.CLASS, DataTag.UNION)
Numbers = npt.NDArray[Any]


class DataEntries:
    """The entries of one binary, looked up by their offset, their parent, their size or their name."""

    def __init__(self, columns: dict[str, Numbers], names: Sequence[str]) -> None:
        """`columns`: the fields of each entry, in the order of the file; `name`: which of `names` it has."""
        self._columns, self._names = columns, names
        self._made: dict[int, Entry] = {}
        """By their row: of most nobody asks."""
        self._found_parts: dict[int, list[Entry]] = {}
        tags, address = columns["tag"], columns["address"]
        is_variable = tags == DataTag.VARIABLE
        is_part = is_any_of(tags, _PARTS)
        named = columns["name"] != 0
        self._types = _by_value(columns["offset"], ~is_part & (~is_variable | ((address == 0) & named)))
        self._parts = np.flatnonzero(is_part)
        self._parts = self._parts[np.argsort(columns["parent"][self._parts], kind="stable")]
        parents = columns["parent"][self._parts]
        begins = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]])) if len(parents) else parents
        runs = pairwise([*begins.tolist(), len(parents)])
        self._parts_of = dict(zip(parents[begins].tolist(), runs, strict=True)) if len(parents) else {}
        placed = np.flatnonzero(is_variable & (address != 0))
        self._variables = placed[np.argsort(address[placed], kind="stable")]
        self._addresses = address[self._variables].tolist()
        self._sized = np.flatnonzero(is_any_of(tags, _AGGREGATES) & (columns["size"] != 0))

    def at(self, offset: int) -> Entry | None:
        """Return the type at an offset, or a variable's declaration."""
        index = self._types.get(offset)
        return None if index is None else self._entry(index)

    def parts_of(self, offset: int) -> list[Entry]:
        """Return the members of a struct, or the dimensions of an array."""
        found = self._found_parts.get(offset)
        if found is None:
            begin, end = self._parts_of.get(offset, (0, 0))
            found = self._found_parts[offset] = self._entries(self._parts[begin:end])
        return found

    def variable_before(self, address: int) -> Entry | None:
        """Return the variable that begins at a link address, or is the last one before it."""
        place = bisect_right(self._addresses, address) - 1
        return self._entry(int(self._variables[place])) if place >= 0 else None

    def of_size(self, size: int) -> list[Entry]:
        """Return the structs, classes and unions of a size."""
        return self._entries(np.array(self._by_size.get(size, ()), np.int64))

    @cached_property
    def definitions(self) -> dict[str, int]:
        """Offsets of structs, classes and unions that are defined, the first of each name."""
        found: dict[str, int] = {}
        columns = (self._columns[name][self._sized].tolist() for name in ("name", "offset"))
        for name, offset in zip(*columns, strict=True):
            if name:
                found.setdefault(self._names[name], offset)
        return found

    @cached_property
    def typedefs(self) -> dict[int, str]:
        """Names that types were given, the first of each."""
        found: dict[int, str] = {}
        rows = self._columns["tag"] == DataTag.TYPEDEF
        for type_, name in zip(*(self._columns[name][rows].tolist() for name in ("type", "name")), strict=True):
            found.setdefault(type_, self._names[name])
        return found

    @cached_property
    def _by_size(self) -> dict[int, list[int]]:
        found: defaultdict[int, list[int]] = defaultdict(list)
        for index, size in zip(self._sized.tolist(), self._columns["size"][self._sized].tolist(), strict=True):
            found[size].append(index)
        return found

    def _entry(self, index: int) -> Entry:
        made = self._made.get(index)
        if made is None:
            (made,) = self._entries(np.array([index]))
            self._made[index] = made
        return made

    def _entries(self, rows: npt.NDArray[np.int64]) -> list[Entry]:
        columns = (self._columns[name][rows].tolist() for name in (*_NUMBERS, "name"))
        return [
            Entry(
                tag, offset, parent, 0, self._names[name], type_, 0, member - 1 if member else None, origin, size=size,
                address=address, elements=elements - 1 if elements else None,
            )
            for tag, offset, parent, type_, member, origin, size, address, elements, name in zip(*columns, strict=True)
        ]


def _by_value(values: Numbers, rows: npt.NDArray[np.bool_]) -> dict[int, int]:
    places = np.flatnonzero(rows)
    return dict(zip(values[places].tolist(), places.tolist(), strict=True))


def data_entries(image: Image) -> DataEntries:
    """Return the entries of a binary, from the cache where they are there. One that cannot be used costs time, no
    entry."""
    path = None
    with suppress(RuntimeError):  # no home directory
        path = cache_directory() / f"{_key(image)}{SUFFIX}"
    if path is not None:
        with suppress(OSError, ValueError):
            return _from_bytes(read_sealed(path))
    columns, names = _read(image)
    if path is not None:
        with suppress(OSError):
            write_sealed(path, _to_bytes(columns, names), LIMIT_BYTES)
    return DataEntries(columns, names)


def read_entries(image: Image) -> DataEntries:
    """Return the entries of a binary without a look at the cache."""
    return DataEntries(*_read(image))


def _key(image: Image) -> str:
    """Return a name for all that the entries are made of."""
    sections = (image.section(name) for name in DATA_SECTIONS)
    return name_of(SUFFIX, *(section and digest(image.contents(section)) for section in sections))


def _read(image: Image) -> tuple[dict[str, Numbers], list[str]]:
    names: dict[str, int] = {"": 0}
    found: dict[str, list[int]] = {name: [] for name in (*_NUMBERS, "name")}
    for unit in read_units(image, data=True):
        for entry in unit.entries:
            found["name"].append(names.setdefault(entry.name, len(names)))
        for name in _NUMBERS:
            found[name] += [_kept(getattr(entry, name), name in _MAY_LACK) for entry in unit.entries]
    return {name: _narrow(values) for name, values in found.items()}, list(names)


def _kept(value: int | None, may_lack: bool) -> int:
    """Return a number as it is kept: 0 for one that is damaged."""
    if value is None or not 0 <= value < _MOST - 1:
        return 0
    return value + may_lack


def _narrow(values: list[int]) -> Numbers:
    return np.array(values, np.min_scalar_type(max(values, default=0)))


def _to_bytes(columns: dict[str, Numbers], names: list[str]) -> bytes:
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    parts = [(name, column.dtype.str, len(column)) for name, column in columns.items()]
    head = json.dumps([len(text), parts]).encode()
    return b"".join((head, b"\n", text, *(column.tobytes() for column in columns.values())))


def _from_bytes(data: bytes) -> DataEntries:
    """Raises ValueError for what is none of ours."""
    end = data.index(b"\n") + 1
    length, parts = json.loads(data[:end])
    names = data[end : end + length].decode("utf-8", "surrogatepass").split("\0")
    at, columns = end + length, {}
    for name, kind, count in parts:
        columns[name] = np.frombuffer(data, kind, count, at)
        at += columns[name].nbytes
    return DataEntries(columns, names)


@cache
def no_entries() -> DataEntries:
    """Return what a binary has that has none."""
    return DataEntries({name: np.zeros(0, np.uint8) for name in (*_NUMBERS, "name")}, [""])
