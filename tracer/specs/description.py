"""Descriptions of functions by a user, a preset or a discovery, before it is known which binary has them."""

from __future__ import annotations

from dataclasses import field

from tracer.late_dataclasses import dataclass
from tracer.model.operations import NO_TRAITS, FunctionSpec, MemoryTrait

TYPE_CAPTURE = "{type}"
"""Stands in a function's name for the name of its type: one line describes a whole family."""


@dataclass(frozen=True)
class DescribedFunction:
    """One function; `spec` has no group yet, and no counter where `member` names it."""

    spec: FunctionSpec
    member: str = ""
    """The counter's name in the object's struct, to be found in each binary's DWARF."""


@dataclass(frozen=True)
class DescribedType:
    """Functions that work on one kind of object, or on the blocks of one allocator."""

    name: str
    functions: tuple[DescribedFunction, ...]
    wraps: bool = False
    """An allocator whose blocks are those of malloc: what it calls inside does not count."""
    memory: MemoryTrait = NO_TRAITS
    """Of an allocator's blocks."""

    @property
    def is_family(self) -> bool:
        return any(TYPE_CAPTURE in function.spec.function for function in self.functions)


@dataclass(frozen=True)
class Description:
    """A file, a preset or an option: several types."""

    name: str
    types: tuple[DescribedType, ...]
    description: str = ""
    source: str = ""
    libraries: tuple[str, ...] = field(default=())
    """Patterns of the libraries whose presence makes `--preset auto` choose it."""
