"""Search for the inlined instances that a binary has of the functions of specs."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace

from tracer.dwarf.debug_facts import DebugFacts
from tracer.dwarf.inlined_instances import InlinedInstance, read_instances
from tracer.elf.image import Image
from tracer.model.operations import FunctionSpec
from tracer.sites.mentions import PATTERN


def names_of_instances(function: FunctionSpec, facts: DebugFacts) -> list[str]:
    """Return the inlined functions that a function of a spec stands for."""
    if PATTERN.search(function.function):
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
