"""A recording's contents."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from tracer.late_dataclasses import dataclass
from tracer.model.events import ERROR_EVENT, EVENT
from tracer.model.frames import Symbols
from tracer.model.snapshot import Records, Snapshot, Stack


@dataclass(frozen=True)
class Info:
    """Who made a recording, of what, and when."""

    version: str = ""
    """Of the refleak that wrote it."""
    command: tuple[str, ...] = ()
    """refleak's own arguments."""
    started: str = ""
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class Recording:
    snapshot: Snapshot
    """As it was written, `open_path` of its binaries aside; what is missing is a loss of it."""
    symbols: Symbols | None
    """None where they were left out, or the trace did not end: to be looked up where the binaries are."""
    info: Info = Info()
    notes: tuple[str, ...] = ()
    """What the reader has to say of the file; also in the snapshot's losses."""


@dataclass(frozen=True)
class Begin:
    """What opens a group: all of a Snapshot that is small, and how much of the rest will follow."""

    facts: Snapshot
    partial: bool = False
    """Taken while the target ran on."""
    stacks: int = 0
    symbols: bool = False
    rows: dict[str, int] = field(default_factory=dict)


def _recorded(dtype: np.dtype[np.void]) -> np.dtype[np.void]:
    """Return the names that a recording has for the columns of a dtype: of events, those of any operation."""
    return EVENT if dtype == ERROR_EVENT else dtype


def _arrays(owner: Any, prefix: str = "") -> Iterator[tuple[str, Records]]:
    for f in fields(owner):
        value = getattr(owner, f.name)
        if isinstance(value, np.ndarray):
            yield prefix + f.name, value.view(_recorded(value.dtype))
        elif prefix == "" and f.name in _NESTED:
            yield from _arrays(value, f"{f.name}.")


def arrays_of(snapshot: Snapshot) -> dict[str, Records]:
    """Return all arrays by name; those of a field that holds several as `field.name`."""
    return dict(_arrays(snapshot))


def with_arrays(facts: Snapshot, stacks: MappingType[int, Stack], arrays: dict[str, Records]) -> Snapshot:
    """Return a snapshot with its bulk; the inverse of `arrays_of`."""
    parts: dict[str, Any] = {"stacks": stacks}
    nested: dict[str, dict[str, Records]] = {name: {} for name in _NESTED}
    for name, array in arrays.items():
        array = array.view(_DTYPES[name])
        field_name, dot, inner = name.partition(".")
        if dot:
            nested[field_name][inner] = array
        else:
            parts[name] = array
    groups = {name: replace(getattr(facts, name), **inner) for name, inner in nested.items()}
    return replace(facts, **parts, **groups)


_EMPTY = Snapshot("launched", 0)
_NESTED = frozenset({"balanced"})
"""Fields that are made of arrays alone."""
ARRAYS = {name: array.dtype for name, array in _arrays(_EMPTY)}
"""The dtype of each array in a recording."""
_DTYPES = {**ARRAYS, "errors": _EMPTY.errors.dtype}
"""The same in a Snapshot."""
BULK = frozenset({"stacks", *(name.partition(".")[0] for name in ARRAYS)})
"""The fields of a Snapshot that have chunks of their own."""
