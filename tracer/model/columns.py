"""Meanings of columns, declared with the dtype of a table: how rows are merged, and which numbers they hold."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

import numpy as np


class Column(Enum):
    """What a column is. STACK and TYPE are keys whose numbers may be replaced by others."""

    KEY = auto()
    STACK = auto()
    TYPE = auto()
    SUM = auto()
    MINIMUM = auto()
    MAXIMUM = auto()
    ANY = auto()
    """Of rows that are merged, that of any one of them."""


KEYS = (Column.KEY, Column.STACK, Column.TYPE)
_DECLARED: dict[tuple[str, ...], Mapping[str, Column]] = {}


def table(*columns: tuple[str, str, Column], align: bool = False) -> np.dtype[np.void]:
    """Return the dtype of a table; `columns`: name, format, meaning."""
    dtype = np.dtype([(name, format_) for name, format_, _ in columns], align=align)
    declare(dtype, {name: meaning for name, _, meaning in columns})
    return dtype


def declare(dtype: np.dtype[np.void], meanings: Mapping[str, Column]) -> None:
    """Say what the columns of a dtype mean; those that are not named are ANY. Raises ValueError for one without."""
    names = dtype.names or ()
    if not set(meanings) <= set(names):
        raise ValueError(f"{sorted(set(meanings) - set(names))} are no columns of {dtype}")
    _DECLARED[names] = {name: meanings.get(name, Column.ANY) for name in names}


def meanings_of(dtype: np.dtype[np.void]) -> Mapping[str, Column]:
    """Return the meanings of a table's columns. Raises KeyError where none were declared."""
    return _DECLARED[dtype.names or ()]


def columns_of(dtype: np.dtype[np.void], *wanted: Column) -> tuple[str, ...]:
    """Return the names of the columns that mean one of these, in order of the dtype."""
    return tuple(name for name, meaning in meanings_of(dtype).items() if meaning in wanted)
