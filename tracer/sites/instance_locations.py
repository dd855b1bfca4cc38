"""From where DWARF says a value is to what a probe can read there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tracer.architecture.current import ARCHITECTURE
from tracer.cfi.unwind_rules import Rule
from tracer.dwarf.inlined_instances import InlinedInstance
from tracer.dwarf.value_expressions import Base, ValuePlace
from tracer.model.operations import NOWHERE, Location, LocationKind
from tracer.model.records import RuleKind

_LARGEST = (1 << 31) - 1
_TOO_DEEP = "its object is behind more pointers than a probe follows"
FindRule = Callable[[int], Rule]
"""Gives the unwind rule at a link address."""


class NotThere(Exception):
    """Why a value cannot be read at an instruction."""


class AlwaysNull(NotThere):
    """The copy is given NULL: it does nothing."""


def argument_number(location: Location) -> int | None:
    """Return which argument a location at a function's first instruction is; None for what is none."""
    if location.kind == LocationKind.REGISTER and location.register in ARCHITECTURE.argument_registers:
        return ARCHITECTURE.argument_registers.index(location.register)
    if location.kind == LocationKind.STACK:
        return len(ARCHITECTURE.argument_registers) + (location.offset - 8) // 8
    return None


def locate(wanted: Location, instance: InlinedInstance, address: int, rule_at: FindRule) -> Location:
    """Return where a value of a spec is in a copy, before the instruction at `address`; raises NotThere."""
    if wanted.kind in (LocationKind.NOWHERE, LocationKind.CONSTANT, LocationKind.OBJECT):
        return wanted
    number = argument_number(wanted)
    if number is None:
        raise NotThere("what it returns is not known where it begins")
    if number >= len(instance.parameters):
        raise NotThere(f"it has no parameter {number}")
    place = instance.parameters[number].at(address)
    if isinstance(place, str):
        raise NotThere(place)
    return _with_use(_location(place, address, rule_at), wanted)


def _location(place: ValuePlace, address: int, rule_at: FindRule) -> Location:
    if place.base is Base.FRAME:
        place = _from_frame(place, rule_at(address))
    first, *rest = place.offsets
    if place.base is Base.CONSTANT and not rest:
        if first == 0:
            raise AlwaysNull("its parameter is always NULL")
        raise NotThere("its parameter is a constant")
    if place.base is Base.ADDRESS:
        location = Location(LocationKind.CODE, offset=first - address)
    elif place.base is Base.REGISTER:
        location = Location(LocationKind.REGISTER, place.register, adjust=first)
    else:
        raise NotThere(_TOO_DEEP)
    if not rest:
        return _checked(location)
    if place.base is Base.REGISTER and place.register == ARCHITECTURE.stack_pointer:
        location = Location(LocationKind.STACK, offset=first, adjust=rest[0])
        rest = rest[1:]
        if not rest:
            return _checked(location)
    if len(rest) > 1 or rest[0]:
        raise NotThere(_TOO_DEEP)
    return _checked(replace(location, dereference=1))


def _from_frame(place: ValuePlace, rule: Rule) -> ValuePlace:
    """Replace the frame address by the register that the unwind table finds it with."""
    registers = {RuleKind.STACK_POINTER: ARCHITECTURE.stack_pointer, RuleKind.FRAME_POINTER: ARCHITECTURE.frame_pointer}
    if rule.kind not in registers:
        raise NotThere("where its frame is is not known")
    first, *rest = place.offsets
    return ValuePlace(Base.REGISTER, registers[rule.kind], (first + rule.offset, *rest))


def _with_use(found: Location, wanted: Location) -> Location:
    """Add what the spec does with the argument: an offset, a dereference."""
    if wanted.width == 4:
        found = replace(found, dereference=2) if found.dereference else replace(found, width=4)
    if not wanted.adjust and not wanted.dereference:
        return found
    if found.dereference:
        raise NotThere(_TOO_DEEP)
    return _checked(replace(found, adjust=found.adjust + wanted.adjust, dereference=wanted.dereference))


def _checked(location: Location) -> Location:
    if max(abs(location.offset), abs(location.adjust)) > _LARGEST:
        raise NotThere("its parameter is too far away")
    return location if location else NOWHERE
