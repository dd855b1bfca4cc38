"""The spec of one option: `--type 'conn:create=conn_new,get=conn_ref,put=conn_unref,delete=conn_free'`."""

from __future__ import annotations

from tracer.errors import SpecInvalid
from tracer.model.operations import Operation
from tracer.specs.description import DescribedFunction, DescribedType, Description
from tracer.specs.functions import (
    MEMORY_OPERATIONS,
    REFERENCE_OPERATIONS,
    Defaults,
    parse_function,
    split_outside_parentheses,
)
from tracer.specs.value_syntax import parse_memory

_ALLOCATOR = "alloc "
_SETTINGS = ("counter", "class", "library", "wraps", "memory")


def parse_type_option(text: str) -> Description:
    """Return what the argument of --type describes; raises SpecInvalid."""
    try:
        described = _parse(text)
    except ValueError as error:
        raise SpecInvalid(f"--type {text!r}: {error}") from None
    return Description(described.name, (described,), source="--type")


def _parse(text: str) -> DescribedType:
    head, colon, body = text.partition(":")
    is_allocator = head.startswith(_ALLOCATOR)
    name = head.removeprefix(_ALLOCATOR).strip()
    if not colon or not name:
        raise ValueError("give NAME:create=FUNCTION,put=FUNCTION or 'alloc NAME:alloc=FUNCTION(size=arg0),free=...'")
    operations = MEMORY_OPERATIONS if is_allocator else REFERENCE_OPERATIONS
    settings: dict[str, str] = {}
    functions: list[tuple[Operation, str]] = []
    for part in split_outside_parentheses(body):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise ValueError(f"{part!r} is neither operation=function nor setting=value")
        if key in operations:
            functions.append((operations[key], value))
        elif key in _SETTINGS:
            settings[key] = value
        else:
            raise ValueError(f"there is no {key!r}; there are {', '.join((*operations, *_SETTINGS))}")
    if not functions:
        raise ValueError("it names no function")
    libraries = (settings["library"],) if "library" in settings else ()
    defaults = Defaults(name, settings.get("counter", ""), libraries, settings.get("class", ""))
    memory = parse_memory(settings.get("memory", ""))
    if memory and not is_allocator:
        raise ValueError("memory is for allocators: 'alloc NAME:...'")
    return DescribedType(name, _described(functions, defaults), wraps=settings.get("wraps") == "yes", memory=memory)


def _described(functions: list[tuple[Operation, str]], defaults: Defaults) -> tuple[DescribedFunction, ...]:
    return tuple(parse_function(value, operation, defaults) for operation, value in functions)
