"""Names as linked, in suppressions: valgrind's have those of C++, where stacks have them as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tracer.analysis.stack_suppression import FrameLine, StackSuppression
from tracer.analysis.suppression import Rule
from tracer.model.frames import LinkedNames, Symbols, place_of
from tracer.symbols.demangling import demangled


def with_written_names(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules, whose lines know how the functions that they call as linked are written."""
    linked = {_linked(line) for rule in rules if isinstance(rule, StackSuppression) for line in rule.lines}
    names = {name: written for name, written in demangled(linked - {""}).items() if written != name}
    return tuple(_written(rule, names) if isinstance(rule, StackSuppression) else rule for rule in rules)


def _linked(line: FrameLine) -> str:
    """The name, without the `*` that stands for what a compiler adds; "" where the pattern is another one."""
    name = line.pattern.removesuffix("*")
    return name if line.kind == "fun" and name.startswith(("_Z", "_R")) and not set(name) & set("*?") else ""


def _written(rule: StackSuppression, names: Mapping[str, str]) -> StackSuppression:
    return replace(rule, lines=tuple(replace(line, written=names.get(_linked(line))) for line in rule.lines))


def linked_names(written: Symbols, linked: Symbols) -> LinkedNames:
    """Return the names as linked of functions that are written otherwise, from both symbols of the same frames."""
    return {
        place_of(frame): other.function
        for key, frames in written.items()
        if len(others := linked.get(key, ())) == len(frames)
        for frame, other in zip(frames, others, strict=True)
        if frame.function is not None and other.function is not None and frame.function != other.function
    }
