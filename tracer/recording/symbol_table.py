"""Symbols as bytes: each frame once, as columns, each text once."""

from __future__ import annotations

import json
import typing
from dataclasses import fields
from typing import Any

from tracer.files.json_codec import Malformed, from_json, parse
from tracer.model.frames import Frame, Symbols

_FIELDS = tuple(field.name for field in fields(Frame))
_HINTS = typing.get_type_hints(Frame)
_TEXTS = frozenset(name for name, kind in _HINTS.items() if kind in (str, str | None))
_DEFAULTS = {field.name: field.default for field in fields(Frame)}


def encode_symbols(symbols: Symbols) -> bytes:
    """Return the frames of every frame key as a payload."""
    frames = {frame: None for of_key in symbols.values() for frame in of_key}
    place = {frame: index for index, frame in enumerate(frames)}
    texts: dict[str, int] = {}
    columns = {name: [_stored(name, getattr(frame, name), texts) for frame in frames] for name in _FIELDS}
    keys = [[key, *(place[frame] for frame in of_key)] for key, of_key in symbols.items()]
    return json.dumps({"texts": list(texts), "columns": columns, "keys": keys}, separators=(",", ":")).encode()


def _stored(name: str, value: Any, texts: dict[str, int]) -> Any:
    return texts.setdefault(value, len(texts)) if name in _TEXTS and value is not None else value


def decode_symbols(payload: bytes) -> dict[int, tuple[Frame, ...]]:
    """Return what `encode_symbols` was given. Raises Malformed."""
    document = parse(payload)
    texts = from_json(tuple[str, ...], document.get("texts"))
    columns, keys = document.get("columns"), document.get("keys")
    if not isinstance(columns, dict) or "function" not in columns:
        raise Malformed("columns")
    rows = len(_list(columns["function"]))
    decoded = [_column(name, columns.get(name, [_DEFAULTS.get(name)] * rows), texts, rows) for name in _FIELDS]
    frames = [Frame(*row) for row in zip(*decoded, strict=True)]
    found = {}
    for row in _list(keys):
        numbers = from_json(tuple[int, ...], row)
        if not numbers or any(not 0 <= place < len(frames) for place in numbers[1:]):
            raise Malformed("keys")
        found[numbers[0]] = tuple(frames[place] for place in numbers[1:])
    return found


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed("list expected")
    return value


def _column(name: str, stored: object, texts: tuple[str, ...], rows: int) -> list[Any]:
    hint = _HINTS[name]
    if name not in _TEXTS:
        values: list[Any] = [from_json(hint, value) for value in _list(stored)]
    else:
        kind: Any = int if hint is str else int | None
        places = [from_json(kind, value) for value in _list(stored)]
        if any(place is not None and not 0 <= place < len(texts) for place in places):
            raise Malformed("texts")
        values = [None if place is None else texts[place] for place in places]
    if len(values) != rows:
        raise Malformed("columns")
    return values
