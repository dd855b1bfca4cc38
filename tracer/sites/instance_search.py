"""Search for the inlined instances that a binary has of the functions of specs."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracer.dwarf.debug_facts import DebugFacts
from tracer.dwarf.inlined_instances import InlinedInstance, read_instances
from tracer.elf.image import Image
from tracer.model.operations import FunctionSpec

_PATTERN = re.compile(r"[*?\[]")


def mentions(image: Image, functions: Iterable[FunctionSpec]) -> bool:
    """Tell, without reading its DWARF, whether a binary may have copies of functions that have no symbol here."""
    section = image.section(".debug_str")
    names = {f.function.encode() for f in functions if not _PATTERN.search(f.function)} if section else set()
    strings = bytes(image.contents(section)) if section and names else b""
    return any(strings.find(b"\0" + name + b"\0") >= 0 for name in names)


def names_of_instances(function: FunctionSpec, facts: DebugFacts) -> list[str]:
    """Return the inlined functions that a function of a spec stands for."""
    if _PATTERN.search(function.function):
        return fnmatch.filter(facts.instances, function.function)
    return [function.function] if function.function in facts.instances else []


def instances_of(
    functions: Sequence[FunctionSpec], facts: DebugFacts, image: Image
) -> list[tuple[FunctionSpec, InlinedInstance]]:
    """Return the copies of the functions, each with its function; those without any code are no copies."""
    found = []
    for function in functions:
        for name in names_of_instances(function, facts):
            named = function if function.function == name else replace(function, function=name)
            found += [(named, instance) for instance in read_instances(image, facts.instances[name])]
    return found
