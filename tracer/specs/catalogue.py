"""All that one trace is told of functions, made into specs for each binary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.model.operations import FunctionSpec, Operation, SiteFlag, Spec
from tracer.specs.description import DescribedFunction, DescribedType, Description


@dataclass(frozen=True)
class Catalogue:
    """Descriptions, whose types are numbered from 1 on: the number is the group of their addresses."""

    descriptions: Sequence[Description] = ()

    def specs(self) -> list[Spec]:
        """Return the specs that hold for every binary."""
        found, group = [], 0
        for description in self.descriptions:
            functions: list[FunctionSpec] = []
            for type_ in description.types:
                group += 1
                functions += _lowered(type_, 0 if type_.wraps else group)
            found.append(Spec(description.name, tuple(functions), description.description, description.source))
        return found


def _lowered(type_: DescribedType, group: int) -> list[FunctionSpec]:
    return [_with_group(function, group) for function in type_.functions]


def _with_group(function: DescribedFunction, group: int) -> FunctionSpec:
    spec = replace(function.spec, group=group)
    if group == 0 and spec.operation == Operation.FREE:  # as free() itself: complete at its entry
        return replace(spec, flags=spec.flags | SiteFlag.ENTRY_RESULT)
    if group == 0 and spec.flags & SiteFlag.OUT_POINTER:  # as posix_memalign()
        return replace(spec, name=spec.object)
    return spec
