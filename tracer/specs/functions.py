"""One function of a spec: `conn_new`, `my_alloc(size=arg0)`, `conn_open(object=*arg1, fails=nonzero)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tracer.architecture.current import argument
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.operations import (
    NO_FLAGS,
    NOWHERE,
    RETURN_VALUE,
    Failure,
    FunctionSpec,
    Location,
    LocationKind,
    Operation,
    SiteFlag,
    constant,
)
from tracer.specs.description import DescribedFunction
from tracer.specs.value_syntax import parse_class, parse_counter, parse_place, parse_value

REFERENCE_OPERATIONS = {
    "create": Operation.CREATE, "get": Operation.GET, "put": Operation.PUT, "delete": Operation.DELETE,
    "names": Operation.NAME, "hides": Operation.NONE,
}  # fmt: skip
MEMORY_OPERATIONS = {"alloc": Operation.ALLOC, "realloc": Operation.REALLOC, "free": Operation.FREE}
OPTIONS = ("object", "counter", "count", "size", "type", "holder", "fails", "nested", "replaces", "shares", "library")

_FUNCTION = late_pattern(r"(?P<name>[A-Za-z_.$*?\[\]{}][\w.$@*?\[\]{}]*)\s*(?:\((?P<options>.*)\))?", re.DOTALL)
_MEMBER = "member:"
_RETURNS_OBJECT = (Operation.CREATE, Operation.ALLOC, Operation.NAME)
_COUNTED = (Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE)
_YES_NO = {"yes": True, "no": False}


@dataclass(frozen=True)
class Defaults:
    """What the type says for all of its functions."""

    type_name: str
    counter: str = ""
    libraries: tuple[str, ...] = ()
    class_: str = ""
    """Where an object has the pointer to its class, whose symbol names its type; as a counter is written."""


def split_outside_parentheses(text: str) -> list[str]:
    """Split at the commas that stand outside of parentheses; raises ValueError where these do not match."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise ValueError(f"parentheses do not match in {text!r}")
    return [part.strip() for part in (*parts, text[start:])]


def parse_function(text: str, operation: Operation, defaults: Defaults) -> DescribedFunction:
    """Return what `NAME` or `NAME(option=value, ...)` describes; raises ValueError with what is wrong."""
    match = _FUNCTION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no function: give NAME or NAME(option=value, ...)")
    options = _options(match["options"] or "")
    spec = FunctionSpec(match["name"], operation, type_name=defaults.type_name, libraries=defaults.libraries)
    spec = _with_object(spec, options)
    spec, member = _with_counter(spec, options.get("counter", defaults.counter))
    if defaults.class_ and operation == Operation.CREATE and "type" not in options:
        options = {**options, "type": f"class:{defaults.class_}"}
    for name, apply in _APPLIERS.items():
        if name in options:
            spec = apply(spec, options[name])
    if operation in (Operation.ALLOC, Operation.REALLOC) and not spec.size:
        raise ValueError(f"{match['name']}: say where the size is, for example {match['name']}(size=arg0)")
    return DescribedFunction(spec, member)


def _options(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for part in split_outside_parentheses(text) if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise ValueError(f"{part!r} is no option: give name=value")
        if name not in OPTIONS:
            raise ValueError(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
        if name in found:
            raise ValueError(f"{name} is given twice")
        found[name] = value
    return found


def _with_object(spec: FunctionSpec, options: Mapping[str, str]) -> FunctionSpec:
    default = RETURN_VALUE if spec.operation in _RETURNS_OBJECT else argument(0)
    if spec.operation == Operation.NONE:
        return spec
    place = parse_place(options["object"]) if "object" in options else default
    if place.dereference and place.kind != LocationKind.RETURN and spec.operation in _RETURNS_OBJECT:
        # What the call makes stands there when it returns: an out parameter.
        size = constant(4) if place.dereference == 2 else NOWHERE
        return replace(spec, object=replace(place, dereference=0), size=size, flags=SiteFlag.OUT_POINTER)
    if place.kind == LocationKind.RETURN and spec.operation in (Operation.PUT, Operation.DELETE, Operation.FREE):
        raise ValueError(f"{spec.function}: what it ends cannot be known from its return value")
    return replace(spec, object=place)


def _with_counter(spec: FunctionSpec, text: str) -> tuple[FunctionSpec, str]:
    if not text or spec.operation not in _COUNTED:
        return spec, ""
    if text.startswith(_MEMBER):
        return spec, text.removeprefix(_MEMBER)
    return replace(spec, counter=parse_counter(text), flags=spec.flags | SiteFlag.COUNTER), ""


def _with_count(spec: FunctionSpec, text: str) -> FunctionSpec:
    count = parse_value(text)
    if spec.operation != Operation.CREATE:
        raise ValueError(f"{spec.function}: count is for create: the first count")
    return replace(spec, count=replace(count, width=4) if not count.dereference else count)


def _with_size(spec: FunctionSpec, text: str) -> FunctionSpec:
    if spec.operation not in (Operation.ALLOC, Operation.REALLOC):
        raise ValueError(f"{spec.function}: size is for alloc and realloc")
    size, star, factor = text.partition("*") if not text.startswith("*") else (text, "", "")
    if not star:
        return replace(spec, size=parse_value(size))
    product = spec.flags | SiteFlag.PRODUCT
    return replace(spec, size=parse_value(size.strip()), count=parse_value(factor.strip()), flags=product)


def _with_type(spec: FunctionSpec, text: str) -> FunctionSpec:
    kind, colon, place = text.partition(":")
    if not colon or kind not in ("string", "handle", "class"):
        return replace(spec, type_name=text.strip("\"'"))
    if spec.operation not in (Operation.CREATE, Operation.NAME):
        raise ValueError(f"{spec.function}: the type is the one given at the create")
    if kind == "class":
        return _with_class(spec, place)
    at = parse_place(place)
    if at.kind == LocationKind.RETURN:
        raise ValueError(f"{spec.function}: the type must be known when the function is called")
    if kind == "handle":
        return replace(spec, name=at, flags=spec.flags | SiteFlag.HANDLE)
    return replace(spec, name=at, type_name=None, flags=spec.flags | SiteFlag.NAMED)


def _with_class(spec: FunctionSpec, text: str) -> FunctionSpec:
    if spec.operation != Operation.CREATE:
        raise ValueError(f"{spec.function}: the class is read where an object is created")
    return replace(spec, name=parse_class(text), flags=spec.flags | SiteFlag.CLASS)


def _with_failure(spec: FunctionSpec, text: str) -> FunctionSpec:
    if text.upper() not in Failure.__members__:
        raise ValueError(f"fails={text}: give {', '.join(rule.name.lower() for rule in Failure)}")
    return replace(spec, failure=Failure[text.upper()])


def _flag(flag: SiteFlag, value: bool) -> Callable[[FunctionSpec, str], FunctionSpec]:
    def apply(spec: FunctionSpec, text: str) -> FunctionSpec:
        if text not in _YES_NO:
            raise ValueError(f"{text!r} is neither yes nor no")
        return replace(spec, flags=spec.flags | flag if _YES_NO[text] == value else spec.flags | NO_FLAGS)

    return apply


def _with_nested(spec: FunctionSpec, text: str) -> FunctionSpec:
    spec = _flag(SiteFlag.ENTRY_RESULT, False)(spec, text)
    returns = spec.object.kind == LocationKind.RETURN or spec.failure or spec.flags & SiteFlag.OUT_POINTER
    if spec.flags & SiteFlag.ENTRY_RESULT and returns:
        raise ValueError(f"{spec.function}: nested=no is for what is known when the function is called")
    if spec.flags & SiteFlag.ENTRY_RESULT and spec.flags & SiteFlag.CLASS:
        raise ValueError(f"{spec.function}: the class is read when the function returns, which nested=no never sees")
    return spec


def _with_library(spec: FunctionSpec, text: str) -> FunctionSpec:
    return replace(spec, libraries=(text,))


def _with_holder(spec: FunctionSpec, text: str) -> FunctionSpec:
    return replace(spec, holder=parse_place(text))


# In this order: nested=no is judged by what stands before it.
_APPLIERS: Mapping[str, Callable[[FunctionSpec, str], FunctionSpec]] = {
    "count": _with_count,
    "size": _with_size,
    "type": _with_type,
    "holder": _with_holder,
    "fails": _with_failure,
    "replaces": _flag(SiteFlag.REPLACES, True),
    "shares": _flag(SiteFlag.SHARES, True),
    "library": _with_library,
    "nested": _with_nested,
}


def counter_at(offset: int) -> Location:
    """Return the location of a counter `offset` bytes into its object."""
    return parse_counter(str(offset)) if offset >= 0 else NOWHERE
