"""The heap profile of gperftools, in its older form: text that ends with the mappings.

Source of the format: gperftools, docs/heapprofile.html and the reader in its pprof script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from tracer.model.findings import Findings, FrameList
from tracer.report.code_layout import CodeLayout, Placed, physical
from tracer.report.weights import NOTHING, Weight, reported, total, weight

_NOWHERE = 1
"""Stands for a stack that was not kept: readers pass over a line without an address."""


def write_heap_profile(findings: Findings, stream: TextIO) -> None:
    """Write counts and bytes in use and, with what was freed again, allocated; by stack, in link addresses laid out.

    The reader looks up names itself, from the files listed. "heapprofile" tells it that nothing was sampled.
    """
    held: dict[FrameList, Weight] = {}
    made: dict[FrameList, Weight] = {}
    for leak in reported(findings):
        held[leak.stack] = held.get(leak.stack, NOTHING) + weight(leak)
    made |= held
    for freed in findings.freed:
        made[freed.stack] = made.get(freed.stack, NOTHING) + Weight(freed.count, freed.bytes)
    layout = CodeLayout(findings.code, {frame for stack in made for frame in stack})
    everything = total(reported(findings)), sum(made.values(), NOTHING)
    stream.write(f"heap profile: {_amounts(*everything)} @ heapprofile\n")
    for stack, amount in sorted(made.items(), key=lambda item: (-item[1].bytes, -item[1].count)):
        stream.write(f"{_amounts(held.get(stack, NOTHING), amount)} @{_addresses(stack, layout)}\n")
    stream.write("\nMAPPED_LIBRARIES:\n")
    for line in _mappings(layout.ranges):
        stream.write(line + "\n")


def _amounts(held: Weight, made: Weight) -> str:
    return f"{held.count:>6}: {held.bytes:>8} [{made.count:>6}: {made.bytes:>8}]"


def _addresses(stack: FrameList, layout: CodeLayout) -> str:
    native = tuple(frame for frame in stack if frame.kind != "guest")  # a script's have no address to look up
    addresses = [layout.address(frames[-1]) for frames in physical(native)] or [_NOWHERE]
    return "".join(f" {address:#x}" for address in addresses)


def _mappings(ranges: Sequence[Placed]) -> list[str]:
    """As /proc/PID/maps has them; without the name where the reader would misplace it."""
    return [
        f"{r.start:08x}-{r.end:08x} r-xp {r.file_offset or 0:08x} 00:00 0".ljust(72)
        + " " + ("".join(r.path.splitlines()) if r.file_offset is not None else "")
        for r in ranges
    ]  # fmt: skip
