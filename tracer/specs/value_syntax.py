"""Value syntax of specs: `arg0`, `return`, `*arg1`, `arg0+16`, `*arg0+112:int`."""

from __future__ import annotations

from dataclasses import replace

from tracer.architecture.current import argument
from tracer.late_patterns import late_pattern
from tracer.model.operations import NO_TRAITS, RETURN_VALUE, Location, LocationKind, MemoryTrait, constant

_PLACE = late_pattern(r"(?P<star>\*?)(?P<base>return|arg(?P<number>\d\d?))(?P<offset>[+-](?:0x[0-9a-fA-F]+|\d+))?"
                    r"(?P<int>:int)?")  # fmt: skip
_NUMBER = late_pattern(r"-?(?:0x[0-9a-fA-F]+|\d+)")
_COUNTER = late_pattern(r"(?:\*(?P<pointer>0x[0-9a-fA-F]+|\d+)\+)?(?P<offset>0x[0-9a-fA-F]+|\d+)")
_LARGEST = (1 << 31) - 1
_LAST_ARGUMENT = 13
_TRAITS = {"root": MemoryTrait.ROOT, "hides": MemoryTrait.HIDES}


def parse_place(text: str) -> Location:
    """Return the location that `text` says; with `:int`, 4 signed bytes. Raises ValueError with what is wrong."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no place: give argN, return, *argN, argN+OFFSET or *argN+OFFSET, perhaps :int")
    if match["number"] is None:
        location = RETURN_VALUE
    else:
        if int(match["number"]) > _LAST_ARGUMENT:
            raise ValueError(f"{text!r}: arguments are numbered from arg0 to arg{_LAST_ARGUMENT}")
        location = argument(int(match["number"]))
    width = 4 if match["int"] else 8
    dereference = (2 if match["int"] else 1) if match["star"] else 0
    if not dereference:
        location = replace(location, width=width)
    return replace(location, dereference=dereference, adjust=_small(match["offset"] or "0"))


def parse_value(text: str) -> Location:
    """Return a place or a constant; raises ValueError."""
    if _NUMBER.fullmatch(text):
        return constant(_small(text))
    return parse_place(text)


def parse_counter(text: str) -> Location:
    """Return where a counter is in its object: `8`, or `*0+8` behind the pointer at offset 0. Raises ValueError."""
    return _in_object(text, "counter: give its offset in the object, *POINTER+OFFSET, or member:NAME")


def parse_class(text: str) -> Location:
    """Return where an object has the pointer to its class, written as a counter is. Raises ValueError."""
    return _in_object(text, "place of a class pointer: give its offset in the object, or *POINTER+OFFSET")


def parse_memory(text: str) -> MemoryTrait:
    """Return what a spec says of an allocator's memory: `root`, `hides`, `root+hides`; nothing where the text is empty.
    Raises ValueError."""
    traits = NO_TRAITS
    for word in filter(None, (part.strip() for part in text.split("+"))):
        if word not in _TRAITS:
            raise ValueError("memory is root or hides, or root+hides")
        traits |= _TRAITS[word]
    return traits


def _in_object(text: str, wanted: str) -> Location:
    match = _COUNTER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no {wanted}")
    pointer = match["pointer"]
    if pointer is None:
        return Location(LocationKind.OBJECT, adjust=_small(match["offset"]))
    return Location(LocationKind.OBJECT, adjust=_small(pointer), dereference=1, offset=_small(match["offset"]))


def _small(text: str) -> int:
    number = int(text, 0) if text.lstrip("+-").startswith(("0x", "0X")) else int(text)
    if abs(number) > _LARGEST:
        raise ValueError(f"{text} is too large")
    return number
