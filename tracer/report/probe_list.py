"""The table of `refleak probes`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from tabulate import tabulate

from tracer.model.operations import Placement, SiteFlag
from tracer.model.probed import ProbedBinary
from tracer.model.snapshot import Unresolved
from tracer.report.amounts import counted
from tracer.report.page import Page, page_for

_HEADERS = ("operation", "function", "offset", "cost", "instruction")
_COSTS = {
    "call": "call: without a trap, about 0.2 us each time",
    "trap": "trap: one trap, about 0.5 us",
    "step": "step: single-stepped, about 17 us in a virtual machine",
}


def write_probes(
    binaries: Sequence[ProbedBinary], absent: Sequence[Unresolved], stream: TextIO, width: int | None = None,
    color: bool | None = None,
) -> None:  # fmt: skip
    """Write which probes each binary would get, and what no probe covers, with the reasons.

    `absent`: functions that the user named and that none of the binaries has. `width`, `color`: as the terminal says
    where they are None.
    """
    page = page_for(stream, width)
    probed = [binary for binary in binaries if binary.placements]
    count = sum(len(binary.placements) for binary in probed)
    uncovered = sum(len(binary.unresolved) for binary in binaries) + len(absent)
    uncovered += len({(binary.path, one.function) for binary in binaries for one in binary.uncovered})
    rest = f"; {counted(uncovered, 'function')} not covered" if uncovered else ""
    page.heading(f"{counted(count, 'probe')} in {len(probed)} of {counted(len(binaries), 'binary', 'binaries')}{rest}")
    for binary in probed:
        _add_binary(page, binary)
    _add_costs(page, binaries)
    _add_uncovered(page, binaries, absent)
    _add_unprobed(page, binaries)
    page.write(stream, color)


def _add_binary(page: Page, binary: ProbedBinary) -> None:
    page.blank()
    page.heading(binary.path)
    rows = [_row(placement) for placement in sorted(binary.placements, key=lambda p: p.site.file_offset)]
    table = tabulate(rows, _HEADERS, tablefmt="simple", disable_numparse=True).splitlines()
    if max(map(len, table)) <= page.width:
        for line in table:
            page.line(line)
    else:
        for operation, name, offset, cost, instruction in rows:
            page.paragraph(f"{operation} {name} at {offset}: {cost}, {instruction}", "    ", "  ")
    _add_copies(page, binary)
    for placement in binary.placements:
        if placement.reason and not placement.site.inlined:
            page.paragraph(f"{placement.site.function.function}: {placement.reason}", "    ", "  ")


def _add_copies(page: Page, binary: ProbedBinary) -> None:
    """Say of each function that was inlined whether it has code of its own, and how many copies are probed."""
    own = {p.site.function.function for p in binary.placements if not p.site.inlined}
    copies = {p.site.link_address: p.site.function.function for p in binary.placements if p.site.inlined}
    probed = Counter(copies.values())
    missed: Counter[str] = Counter()
    for one in binary.uncovered:
        missed[one.function] += one.copies
    if probed or missed:
        page.heading("  inlined")
    for name in sorted({*probed, *missed}):
        parts = [f"{counted(probed[name], 'copy', 'copies')} probed"] if probed[name] else []
        parts += [f"{missed[name]:,} not"] if missed[name] else []
        where = "and out of line" if name in own else "no code of its own"
        page.paragraph(f"{name}: {', '.join(parts)}; {where}", "      ", "    ")


def _row(placement: Placement) -> tuple[str, ...]:
    function = placement.site.function
    name = f"{function.function} (inlined)" if placement.site.inlined else function.function
    return (
        function.operation.name.lower(), name, f"{placement.file_offset:#x}", placement.cost,
        placement.instruction,
    )


def _add_costs(page: Page, binaries: Sequence[ProbedBinary]) -> None:
    used = {placement.cost for binary in binaries for placement in binary.placements}
    if used:
        page.blank()
    for cost, words in _COSTS.items():
        if cost in used:
            page.paragraph(words, "  ", "")


def _add_uncovered(page: Page, binaries: Sequence[ProbedBinary], absent: Sequence[Unresolved]) -> None:
    if not absent and not any(binary.unresolved or binary.uncovered for binary in binaries):
        return
    page.blank()
    page.heading("not covered")
    for binary in binaries:
        for missed in binary.unresolved:
            page.paragraph(f"{missed.operation} {missed.function} in {binary.name}: {missed.reason}", "    ", "  ")
        for one in binary.uncovered:
            what = f"{counted(one.copies, 'inlined copy', 'inlined copies')} of {one.function}"
            page.paragraph(f"{one.operation} {what} in {binary.name}: {one.reason}", "    ", "  ")
    for missed in absent:
        page.paragraph(f"{missed.operation} {missed.function}: {missed.reason}", "    ", "  ")


def _add_unprobed(page: Page, binaries: Sequence[ProbedBinary]) -> None:
    names = ", ".join(binary.name for binary in binaries if not binary.placements)
    if names:
        page.blank()
        page.paragraph(f"nothing to probe in: {names}", "    ", "")


def write_probes_json(binaries: Sequence[ProbedBinary], absent: Sequence[Unresolved], stream: TextIO) -> None:
    """Write the same as one JSON document; offsets are hex strings."""
    document = {
        "format": "refleak-probes",
        "version": 1,
        "binaries": [
            {
                "path": binary.path,
                "probes": [_probe(placement) for placement in binary.placements],
                "unresolved": [vars(missed) for missed in binary.unresolved],
                "uncovered": [vars(copies) for copies in binary.uncovered],
            }
            for binary in binaries
        ],
        "absent": [vars(missed) for missed in absent],
    }
    json.dump(document, stream, indent=1)
    stream.write("\n")


def _probe(placement: Placement) -> dict[str, str | bool | None]:
    function = placement.site.function
    has_return = not function.flags & SiteFlag.ENTRY_RESULT
    return {
        "operation": function.operation.name.lower(),
        "type": function.type_name,
        "function": function.function,
        "inlined": placement.site.inlined,
        "function_offset": f"{placement.site.file_offset:#x}",
        "offset": f"{placement.file_offset:#x}",
        "return_offset": f"{placement.return_offset:#x}" if has_return else None,
        "instruction": placement.instruction,
        "cost": placement.cost or None,
        "reason": placement.reason or None,
    }
