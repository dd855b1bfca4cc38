"""Missing names: asked for, and found in nothing that ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from tracer.elf.image import Image
from tracer.errors import NothingFound, RefleakError
from tracer.model.findings import Findings
from tracer.model.snapshot import Missing, Snapshot
from tracer.pipeline.trace_options import TraceOptions
from tracer.sites.mentions import mentions
from tracer.specs.catalogue import Catalogue
from tracer.specs.description import TYPE_CAPTURE, DescribedType, Description
from tracer.specs.presets import DIRECTORY

_FROM_OPTION = "--type"


def with_missing(snapshot: Snapshot, options: TraceOptions) -> Snapshot:
    """Return the snapshot with the described types and functions that were found nowhere."""
    if options.allow_missing:
        return snapshot
    missing = tuple(find_missing(snapshot, options.catalogue, optional=options.takes_any_preset))
    return replace(snapshot, coverage=replace(snapshot.coverage, missing=missing)) if missing else snapshot


def find_missing(snapshot: Snapshot, catalogue: Catalogue, *, optional: bool) -> Iterator[Missing]:
    """Yield what no binary had. A preset is missing where all of it is: few programs use all of a library.

    `optional`: presets were not chosen one by one, so that none of them has to be there.
    """
    found = {site.function for site in snapshot.sites}
    found |= {unresolved.function.partition(".")[0] for unresolved in snapshot.coverage.unresolved}
    found |= {copies.function for copies in snapshot.coverage.uncovered_instances}
    for description in catalogue.descriptions:
        if _is_preset(description):
            if not optional and not any(_present(type_, found) for type_ in description.types):
                yield Missing(f"preset {description.name}")
            continue
        for type_ in description.types:
            functions = _functions(type_)
            absent = [function for function in functions if not _is_found(function, found)]
            one_by_one = description.source == _FROM_OPTION
            if len(absent) < len(functions) and not one_by_one:
                continue
            absent = [function for function in absent if not _is_mentioned(type_, function, snapshot)]
            if len(absent) == len(functions):
                yield Missing(type_.name)
            elif one_by_one:
                yield from (Missing(type_.name, function) for function in absent)


def check_found(findings: Findings) -> None:
    """Raise NothingFound where a name that the user gave was found nowhere."""
    if findings.coverage.missing:
        named = ", ".join(map(str, findings.coverage.missing))
        raise NothingFound(f"found nowhere: {named}")


def _is_preset(description: Description) -> bool:
    return Path(description.source).parent == DIRECTORY


def _functions(type_: DescribedType) -> tuple[str, ...]:
    return tuple(dict.fromkeys(function.spec.function for function in type_.functions))


def _present(type_: DescribedType, found: set[str]) -> bool:
    return any(_is_found(function, found) for function in _functions(type_))


def _is_mentioned(type_: DescribedType, function: str, snapshot: Snapshot) -> bool:
    """Tell whether the DWARF of a binary knows a function that has no code of its own there: all of it is inlined."""
    specs = [described.spec for described in type_.functions if described.spec.function == function]
    for binary in snapshot.binaries:
        with suppress(RefleakError, OSError), Image.open(binary.open_path or binary.path) as image:
            if mentions(image, specs):
                return True
    return False


def _is_found(function: str, found: set[str]) -> bool:
    """Tell whether a function, or one that its pattern stands for, is among those found."""
    if function in found:
        return True
    pattern = function.replace(TYPE_CAPTURE, "*")
    return any(fnmatchcase(name, pattern) for name in found)
