"""The floor: the probes that refleak would attach, with programs that do nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import isinf
from pathlib import Path

from benchmarks.commands import Unmeasured, run
from benchmarks.programs import Programs
from benchmarks.samples import samples_of, text_of_ratio, text_of_time
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table
from tracer.elf.image import Image
from tracer.errors import RefleakError
from tracer.files.cache_folder import cache_directory
from tracer.kernel import bpf
from tracer.kernel.instruction_costs import measure_costs
from tracer.kernel.programs import has_uprobe_multi
from tracer.model.operations import Placement, SiteFlag
from tracer.pipeline.site_finder import cost_model
from tracer.probing.site_finder import SiteFinder

_RETURN_ZERO = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])
_LDD_SECONDS = 20
_LIBRARY = re.compile(r"(/\S+) \(0x")


def instruction_costs(_programs: Programs, settings: Settings) -> Results:
    """Measure a hit of an empty program by the instruction under it, as refleak does to place its probes."""
    measured = [measure_costs() for _ in range(settings.rounds)]
    names = [name for name in measured[0] if all(name in costs for costs in measured)]
    if not names:
        raise Unmeasured("the costs cannot be measured on this kernel")
    samples = {name: samples_of(*(costs[name] for costs in measured)) for name in names}
    crashing = [name for name in names if isinf(samples[name].median)]
    usable = [name for name in names if name not in crashing]
    least = min(usable, key=lambda name: samples[name].median)
    lines = [[name, text_of_time(samples[name].median), text_of_ratio(samples[name].over(samples[least]))]
             for name in usable]  # fmt: skip
    notes = [f"{name}: not used here, since children of the process would crash by it" for name in crashing]
    header = ["instruction", "time", f"over {least}"]
    return Results([Table("One hit of an empty program", header, lines, notes)])


@lru_cache(maxsize=32)
def binaries_of(program: Path) -> tuple[Path, ...]:
    """Return a program and the libraries that it is linked with."""
    listed = run(["ldd", program], _LDD_SECONDS)
    return program, *map(Path, dict.fromkeys(_LIBRARY.findall(listed.stdout)))


@lru_cache(maxsize=64)
def placements_in(binary: Path) -> tuple[Placement, ...]:
    """Return where refleak puts its probes at default settings; none in what is no ELF file."""
    try:
        finder = SiteFinder(cost_model(cache_directory()), references=True, heap=True, mappings=True)
        return tuple(finder.find(Image.open(str(binary))).placements)
    except RefleakError:
        return ()


@contextmanager
def empty_probes(pid: int, program: Path) -> Iterator[None]:
    """Attach the empty programs to a process that is going to be `program`; raises Unmeasured."""
    if not has_uprobe_multi():
        raise Unmeasured("the kernel has no uprobe_multi")
    code = bpf.load_program(
        bpf.ProgramType.KPROBE, "floor", _RETURN_ZERO, attach_type=bpf.ATTACH_UPROBE_MULTI
    )[0]
    links: list[int] = []
    try:
        for binary in binaries_of(program):
            placed = placements_in(binary)
            returning = [p for p in placed if not p.site.function.flags & SiteFlag.ENTRY_RESULT]
            links += _link(code, binary, [_return_offset(p) for p in returning], pid, at_return=True)
            links += _link(code, binary, [p.file_offset for p in placed], pid, at_return=False)
        if not links:
            raise Unmeasured("there is nothing to probe")
        yield
    finally:
        for fd in (*links, code):
            os.close(fd)


def _return_offset(placement: Placement) -> int:
    offset = placement.return_file_offset
    return placement.site.file_offset if offset is None else offset


def _link(code: int, binary: Path, offsets: Sequence[int], pid: int, *, at_return: bool) -> list[int]:
    if not offsets:
        return []
    return [bpf.link_uprobes(code, str(binary), list(offsets), [0] * len(offsets), pid, at_return=at_return)]
