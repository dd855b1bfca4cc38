"""Small values as JSON and back: dataclasses, enums, tuples, mappings, checked against their annotations."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import IntEnum, IntFlag
from functools import cache, partial
from typing import Any, TypeVar

from tracer.model.recorded_names import recorded_name

T = TypeVar("T")
Reader = Callable[[object], object]
_PLAIN = frozenset((int, str, bool, float, type(None)))
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class Malformed(ValueError):
    """Bytes whose checksum is right but whose content is not: made by no writer of ours."""


def to_json(value: object) -> object:
    """Return a value as `json` writes it: dataclasses become objects, mappings lists of pairs."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if (names := _names(typing.cast(Any, kind))) is not None:
        return {recorded: to_json(getattr(value, name)) for recorded, name in names}
    if isinstance(value, Mapping):
        return [[to_json(key), to_json(item)] for key, item in value.items()]
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


@cache
def _names(kind: type) -> tuple[tuple[str, str], ...] | None:
    """Return what the fields of a dataclass are called, in a file and here; None for another type."""
    return tuple((recorded_name(field), field.name) for field in fields(kind)) if is_dataclass(kind) else None


def sparse_json(value: object) -> object:
    """Return a value as `to_json` does, without the fields that have their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        given = ((field, getattr(value, field.name)) for field in fields(value))
        return {recorded_name(field): sparse_json(item) for field, item in given if not _is_default(field, item)}
    if isinstance(value, tuple):
        return [sparse_json(item) for item in value]
    return to_json(value)


def _is_default(field: Field[Any], value: object) -> bool:
    return field.default is not MISSING and bool(field.default == value)


def parse(payload: bytes) -> dict[str, Any]:
    """Return a JSON object; raises Malformed for anything else."""
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        raise Malformed("not JSON") from None
    if not isinstance(document, dict):
        raise Malformed("not a JSON object")
    return document


def from_json(kind: type[T], value: object) -> T:
    """Return the value of annotated type `kind` that `to_json` wrote. Raises Malformed."""
    return typing.cast(T, _reader(typing.cast(Any, kind))(value))


@cache
def _reader(kind: Any) -> Reader:
    """Return what reads values of an annotated type: found once, for what may be a million of them."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        return _tuple_reader(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = _tuple_reader((types.GenericAlias(tuple, arguments), Ellipsis))
        return lambda value: dict(pairs(value))  # type: ignore[call-overload]
    if is_dataclass(kind) and isinstance(kind, type):
        return partial(_dataclass, kind)
    if isinstance(kind, type) and issubclass(kind, IntEnum | IntFlag):
        return partial(_member, kind)
    return partial(_scalar, kind)


def _scalar(kind: Any, value: object) -> object:
    if type(value) is not kind or kind not in (int, str, bool):
        raise Malformed(f"{kind} expected")
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise Malformed("number")
    return value


def _member(kind: type[IntEnum | IntFlag], value: object) -> object:
    if type(value) is int:
        with suppress(ValueError):
            return kind(value)
    raise Malformed(f"{kind} expected")


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        read = _reader(arguments[0])
        return lambda value: tuple(map(read, _list(value)))
    readers = [_reader(kind) for kind in arguments]
    return partial(_row, readers)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise Malformed("list expected")
    return value


def _row(readers: Sequence[Reader], value: object) -> tuple[object, ...]:
    items = _list(value)
    if len(items) != len(readers):
        raise Malformed("list of another length")
    return tuple(read(item) for read, item in zip(readers, items, strict=True))


def _dataclass(kind: Any, value: object) -> object:
    """Fields that the file lacks take their defaults; those that the class lacks are passed over."""
    if not isinstance(value, dict):
        raise Malformed("object expected")
    found = {}
    for recorded, name, read, has_default in _described(kind):
        if recorded in value:
            found[name] = read(value[recorded])
        elif not has_default:
            raise Malformed(f"{recorded} is missing")
    return kind(**found)


@cache
def _described(kind: Any) -> tuple[tuple[str, str, Reader, bool], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (recorded_name(field), field.name, _reader(hints[field.name]),
         field.default is not MISSING or field.default_factory is not MISSING)
        for field in fields(kind)
    )  # fmt: skip
