"""Words that point at something, one row each, summed up by what holds them: HOLDER_RECORDs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.holders import HOLDER_RECORD, SEVERAL, HolderKind
from tracer.model.snapshot import Records

Column = npt.NDArray[Any]
_MOST_OFFSETS = 8
"""In blocks of one birth: more are an array's."""
MOST_OF_TARGET = 64
MOST_ROWS = 1 << 16
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True)
class HolderRows:
    """Columns of one length, as the fields of HOLDER_RECORD; `group` numbers the targets."""

    group: Column
    kind: Column
    place: Column
    offset: Column
    size: Column
    type: Column
    table: Column
    released: Column
    tid: Column
    interior: Column
    count: Column

    def __len__(self) -> int:
        return len(self.group)

    def __getitem__(self, rows: Any) -> HolderRows:
        return HolderRows(*(getattr(self, name)[rows] for name in _COLUMNS))


_COLUMNS = tuple(field.name for field in fields(HolderRows))
_DETAILS = tuple(name for name in _COLUMNS if name != "count")
"""Rows that agree in these are one."""


def joined(parts: list[HolderRows]) -> HolderRows:
    some = [part for part in parts if len(part)]
    if len(some) < 2:
        return some[0] if some else NO_ROWS
    return HolderRows(*(np.concatenate([getattr(p, name) for p in some]) for name in _COLUMNS))


def others(group: Column, count: Column) -> HolderRows:
    """Return rows of blocks of which nothing more is said."""
    nothing = np.zeros(len(group), np.uint64)
    return HolderRows(
        group, np.full(len(group), int(HolderKind.BLOCK)), nothing, np.full(len(group), SEVERAL), nothing, nothing,
        nothing, nothing, nothing, np.zeros(len(group), np.uint8), count,
    )  # fmt: skip


NO_ROWS = others(np.zeros(0, np.int64), np.zeros(0, np.int64))


def mixed(*columns: Column) -> npt.NDArray[np.uint64]:
    """Return a hash of each row: of a million rows two that differ have the same once in 10**7 runs."""
    hash_: npt.NDArray[np.uint64] = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hash_ ^= column.astype(np.uint64)
        hash_ *= _FACTOR
        hash_ ^= hash_ >> _SHIFT
    return hash_


def summed(rows: HolderRows) -> HolderRows:
    """Sum up rows that agree in all but their count; then those that differ in too many offsets or places."""
    rows = _merged(rows, _DETAILS)
    same = ("group", "kind", "place", "type", "table", "tid", "released")
    rows = _without_details(rows, same, np.flatnonzero(rows.kind == HolderKind.BLOCK))
    return _few(rows)


def _merged(rows: HolderRows, names: tuple[str, ...]) -> HolderRows:
    if len(rows) == 0:
        return rows
    _, first, label = np.unique(
        mixed(*(getattr(rows, name) for name in names)), return_index=True, return_inverse=True
    )
    counts = np.bincount(label, rows.count).astype(np.int64)
    return replace(rows[first], count=counts)


def _without_details(rows: HolderRows, same: tuple[str, ...], chosen: npt.NDArray[np.int64]) -> HolderRows:
    """Take the offsets and sizes away from those of the chosen rows that differ in too many."""
    if len(chosen) == 0:
        return rows
    part = rows[chosen]
    _, label, counts = np.unique(
        mixed(*(getattr(part, name) for name in same)), return_inverse=True, return_counts=True
    )
    many = chosen[counts[label] > _MOST_OFFSETS]
    if len(many) == 0:
        return rows
    offset, size = rows.offset.copy(), rows.size.copy()
    offset[many], size[many] = SEVERAL, 0
    return _merged(replace(rows, offset=offset, size=size), _DETAILS)


def _few(rows: HolderRows) -> HolderRows:
    """Keep those of each target that hold most; of the rest it is only kept what kind they are."""
    order = np.lexsort((rows.place, rows.kind, -rows.count, rows.group))
    rows = rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows.group, rows.group)
    rest = rank >= MOST_OF_TARGET
    if rest.any():
        columns = {name: np.where(rest, 0, getattr(rows, name)) for name in ("place", "size", "type", "table", "tid")}
        offset = np.where(rest, SEVERAL, rows.offset)
        rows = _merged(replace(rows, offset=offset, **columns), _DETAILS)
    return rows


def records_of(rows: HolderRows, target: Column, size: Column, kind: Column, space: tuple[int, int]) -> Records:
    """Return HOLDER_RECORDs; `target`, `size` and `kind`: of each group. A group that has no row gets one that says
    so; where there are more than MOST_ROWS, the last groups get none."""
    alone = np.flatnonzero(np.bincount(rows.group, minlength=len(target)) == 0)
    records = np.zeros(len(rows) + len(alone), HOLDER_RECORD)
    group = np.concatenate([rows.group, alone]).astype(np.int64)
    for name in _COLUMNS:
        if name != "group":
            records[name][: len(rows)] = getattr(rows, name)
    records["target"], records["target_size"], records["target_kind"] = target[group], size[group], kind[group]
    records["pid"], records["generation"] = space
    order = np.argsort(group, kind="stable")
    last = np.searchsorted(group[order], group[order[MOST_ROWS]]) if len(order) > MOST_ROWS else len(order)
    sorted_: Records = records[order[:last]]
    return sorted_
