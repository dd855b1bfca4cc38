"""Structured arrays as bytes: column by column, differences, bytes of equal weight side by side.

Neighbours in a column are alike, so their differences are small; with the high bytes of all of them together, deflate
finds long runs of zeros (the shuffle filter of HDF5 and Blosc).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.files.json_codec import Malformed
from tracer.model.snapshot import Records

ROWS = 1 << 15
"""Most rows in one chunk: bounds the reader's memory, and what a cut costs."""
_SAMPLE = 1024
_PLAIN, _DELTA = "plain", "delta"
_LENGTH = struct.Struct("<I")

Column = npt.NDArray[Any]


def encode_records(name: str, records: Records) -> Iterator[bytes]:
    """Yield the payloads of as many chunks as the array needs; none for an empty one."""
    for start in range(0, len(records), ROWS):
        yield _encode(name, records[start : start + ROWS])


def _encode(name: str, records: Records) -> bytes:
    columns, bodies = [], []
    for field in records.dtype.names or ():
        values = np.ascontiguousarray(records[field])
        coding, body = _smaller(values)
        columns.append([field, values.dtype.str, coding])
        bodies.append(body)
    head = json.dumps({"name": name, "rows": len(records), "columns": columns}).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *bodies])


def _smaller(values: Column) -> tuple[str, bytes]:
    """Choose by how well the first rows compress."""
    if values.dtype.kind not in "iu":
        return _PLAIN, _shuffled(values)
    sample = values[:_SAMPLE]
    plain, delta = (len(zlib.compress(_shuffled(v), 1)) for v in (sample, _differences(sample)))
    return (_DELTA, _shuffled(_differences(values))) if delta < plain else (_PLAIN, _shuffled(values))


def _differences(values: Column) -> Column:
    """Return each value less the one before it, wrapped."""
    unsigned = values.view(f"<u{values.dtype.itemsize}")
    out = unsigned.copy()
    out[1:] -= unsigned[:-1]
    return out


def _shuffled(values: Column) -> bytes:
    return values.view(np.uint8).reshape(len(values), values.dtype.itemsize).T.tobytes()


def decode_records(payload: bytes, known: dict[str, np.dtype[np.void]]) -> tuple[str, Records] | None:
    """Return a chunk's array and its name; None for an array that `known` does not name.

    Columns that its dtype lacks are passed over, those that the file lacks are zero. Raises Malformed.
    """
    head, at = _head(payload)
    name, rows = head["name"], head["rows"]
    if not isinstance(rows, int) or not 0 < rows <= ROWS or not isinstance(head["columns"], list):
        raise Malformed("rows")
    dtype = known.get(name)
    records = None if dtype is None else np.zeros(rows, dtype)
    for column in head["columns"]:
        field, kind, coding = _described(column)
        body = payload[at : at + rows * kind.itemsize]
        at += len(body)
        if len(body) < rows * kind.itemsize:
            raise Malformed("columns")
        if records is not None and dtype is not None and field in (dtype.names or ()):
            if dtype[field] != kind:
                raise Malformed("column of another type")
            records[field] = _values(body, rows, kind, coding)
    if at != len(payload):
        raise Malformed("columns")
    return None if records is None else (name, records)


def _head(payload: bytes) -> tuple[dict[str, Any], int]:
    if len(payload) < _LENGTH.size:
        raise Malformed("header")
    end = _LENGTH.size + _LENGTH.unpack_from(payload)[0]
    try:
        head = json.loads(payload[_LENGTH.size : end])
    except (ValueError, RecursionError):
        raise Malformed("header") from None
    if not isinstance(head, dict) or not {"name", "rows", "columns"} <= head.keys() or end > len(payload):
        raise Malformed("header")
    if not isinstance(head["name"], str):
        raise Malformed("name")
    return head, end


def _described(column: object) -> tuple[str, np.dtype[Any], str]:
    match column:
        case [str(field), str(kind), "plain" | "delta" as coding] if kind[:2] in ("<u", "<i", "|u", "|i", "|S"):
            try:
                dtype = np.dtype(kind)
            except TypeError:
                raise Malformed("type of a column") from None
            if dtype.itemsize and (coding == _PLAIN or dtype.kind in "iu"):
                return field, dtype, str(coding)
    raise Malformed("column")


def _values(body: bytes, rows: int, kind: np.dtype[Any], coding: str) -> Column:
    weights = np.frombuffer(body, np.uint8).reshape(kind.itemsize, rows)
    values = np.ascontiguousarray(weights.T).reshape(-1).view(kind)
    if coding == _DELTA:
        unsigned = values.view(f"<u{kind.itemsize}")
        return np.cumsum(unsigned, dtype=unsigned.dtype).view(kind)
    return values
