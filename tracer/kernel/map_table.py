"""The table of BPF maps that the BPF sources declare (bpf/map_table.bpf.h): kinds, types, entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tracer.kernel import bpf, kernel_records
from tracer.kernel.bpf import MapType
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model import records

_LINE = late_pattern(r"^(DECLARE_MAP|DECLARE_RING|DECLARE_VALUE|DECLARE_ARRAY|ROOM)\((.*)\);$", re.M)
_KINDS = {
    "HASH": (MapType.HASH, bpf.F_NO_PREALLOC), "LRU_HASH": (MapType.LRU_HASH, 0), "ARRAY": (MapType.ARRAY, 0),
    "SHARED_ARRAY": (MapType.ARRAY, bpf.F_MMAPABLE),
    "FROZEN_ARRAY": (MapType.ARRAY, bpf.F_READ_ONLY), "PERCPU_ARRAY": (MapType.PERCPU_ARRAY, 0),
    "PROG_ARRAY": (MapType.PROG_ARRAY, 0),
}  # fmt: skip
_SCALARS = {"u8": 1, "u32": 4, "u64": 8}
_OF_ABI = {
    "LOSS_COUNT": len(records.LossKind), "COUNT_SLOTS": records.COUNT_SLOTS, "HOLD_SLOTS": records.HOLD_SLOTS,
    "MAX_SITES": records.MAX_SITES, "LUA_LAYOUTS": records.LUA_LAYOUTS, "RULES": records.RULES,
    "TABLES": records.TABLES,
}  # fmt: skip
"""Of the constants of bpf/abi.h, those that the table names."""


@dataclass(frozen=True)
class DeclaredMap:
    """One map. Sizes are in bytes; `entries` is a number, or the name of a limit."""

    name: str
    kind: MapType
    key_size: int
    value_size: int
    entries: int | str
    flags: int


@dataclass(frozen=True)
class MapTable:
    """All maps in the order of the file, and the elements of those that are arrays in shared memory."""

    maps: tuple[DeclaredMap, ...]
    rooms: Mapping[str, int]
    """Bytes of structs that the kernel side alone knows."""
    lengths: Mapping[str, int]


@cache
def read_map_table(directory: Path) -> MapTable:
    """Read the table in the folder of the BPF sources. Raises KeyError for a type or a kind that is not known."""
    lines = [(word, [part.strip() for part in rest.split(",")])
             for word, rest in _LINE.findall((directory / "map_table.bpf.h").read_text())]  # fmt: skip
    rooms = {name: int(size) for word, (name, size, *_) in lines if word == "ROOM"}
    lengths = {name: _number(count) for word, (name, *_, count) in lines if word == "DECLARE_ARRAY"}
    maps = [_declared(word, parts, rooms) for word, parts in lines if word != "ROOM"]
    return MapTable(tuple(maps), rooms, lengths)


def _declared(word: str, parts: list[str], rooms: Mapping[str, int]) -> DeclaredMap:
    name = parts[0]
    if word == "DECLARE_RING":
        return DeclaredMap(name, MapType.RINGBUF, 0, 0, _entries(parts[1]), 0)
    if word == "DECLARE_MAP":
        kind, flags = _KINDS[parts[1]]
        return DeclaredMap(name, kind, _size(parts[2], rooms), _size(parts[3], rooms), _entries(parts[4]), flags)
    count = _number(parts[2]) if word == "DECLARE_ARRAY" else 1
    return DeclaredMap(name, MapType.ARRAY, 4, count * _size(parts[1], rooms), 1, bpf.F_MMAPABLE)


def _size(c_type: str, rooms: Mapping[str, int]) -> int:
    """Return the bytes of a C type: a number, a struct of bpf/abi.h, or one that has room."""
    if c_type in _SCALARS:
        return _SCALARS[c_type]
    name = c_type.removeprefix("struct ")
    if name in rooms:
        return rooms[name]
    room = records if hasattr(records, name.upper()) else kernel_records
    size: int = vars(room)[name.upper()].itemsize
    return size


def _entries(word: str) -> int | str:
    return _number(word) if word.isdecimal() or word in _OF_ABI else word


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _OF_ABI[word]
