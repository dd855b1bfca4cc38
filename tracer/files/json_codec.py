"""Small values as JSON and back: dataclasses, enums, tuples, mappings, checked against their annotations."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, TypeVar

from tracer.model.recorded_names import recorded_name

T = TypeVar("T")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class Malformed(ValueError):
    """Bytes whose checksum is right but whose content is not: made by no writer of ours."""


def to_json(value: object) -> object:
    """Return a value as `json` writes it: dataclasses become objects, mappings lists of pairs."""
    if is_dataclass(value) and not isinstance(value, type):
        return {recorded_name(field): to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return [[to_json(key), to_json(item)] for key, item in value.items()]
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


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
    return typing.cast(T, _value(kind, value))


def _value(kind: Any, value: object) -> object:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return None if value is None else _value(inner, value)
    if origin is tuple:
        return _tuple(arguments, value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict(_tuple((types.GenericAlias(tuple, arguments), Ellipsis), value))  # type: ignore[arg-type]
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value)
    return _scalar(kind, value)


def _scalar(kind: Any, value: object) -> object:
    if isinstance(kind, type) and issubclass(kind, IntEnum | IntFlag):
        return _member(kind, value)
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


def _tuple(arguments: tuple[Any, ...], value: object) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise Malformed("list expected")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_value(arguments[0], item) for item in value)
    if len(value) != len(arguments):
        raise Malformed("list of another length")
    return tuple(_value(kind, item) for kind, item in zip(arguments, value, strict=True))


def _dataclass(kind: Any, value: object) -> object:
    """Fields that the file lacks take their defaults; those that the class lacks are passed over."""
    if not isinstance(value, dict):
        raise Malformed("object expected")
    found = {}
    for recorded, name, hint, has_default in _described(kind):
        if recorded in value:
            found[name] = _value(hint, value[recorded])
        elif not has_default:
            raise Malformed(f"{recorded} is missing")
    return kind(**found)


@cache
def _described(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (recorded_name(field), field.name, hints[field.name],
         field.default is not MISSING or field.default_factory is not MISSING)
        for field in fields(kind)
    )  # fmt: skip
