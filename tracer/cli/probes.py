"""Say what would be probed and what not, and why, without running anything.

Lists every site in a program and the libraries that it starts with, or in what a process (-p) has mapped now: where
the probe sits, on which instruction, and what a hit costs there. Root is needed for processes of others only.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tracer.binaries.interposers import judge_mapped
from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_up import start_up_binaries
from tracer.capture.launch import find_command
from tracer.cli import options
from tracer.cli.reporting import text_color, text_width
from tracer.cli.step_line import StepLine
from tracer.cli.target_words import pids_of
from tracer.cli.trace_choices import probe_options
from tracer.errors import NothingToProbe, UsageError
from tracer.late_patterns import late_pattern
from tracer.model.probed import ProbedBinary
from tracer.model.snapshot import Unresolved
from tracer.pipeline.site_finder import site_finder
from tracer.pipeline.steps import step
from tracer.pipeline.target_check import check_pids, check_program
from tracer.probing.site_finder import SiteFinder
from tracer.procfs.maps import paths_that_open, read_maps
from tracer.report.probe_list import write_probes, write_probes_json
from tracer.specs.files import read_spec_file
from tracer.specs.options import parse_type_option

NAME = "probes"

_NOWHERE = "has no symbol here: it was inlined or stripped, or its library is loaded later"
_PATTERN = late_pattern(r"[*?\[{]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_pids(parser, "look at")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD ...", help="the program to look at; it is not run"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options.add_look(parser)
    options.add_kinds(parser)
    options.add_specs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the probes; raises NothingToProbe where there would be none."""
    if (arguments.pid is None) == (not arguments.command):
        raise UsageError("say what to look at: a command or -p PID", "refleak probes --help")
    binaries = Binaries()
    try:
        opened = _of_command(binaries, arguments.command[0]) if arguments.command else _of_processes(
            binaries, pids_of(arguments)
        )
        with step(StepLine(sys.stderr).show, "looking for functions"):
            probed = _probed(opened, site_finder(probe_options(arguments)))
    finally:
        binaries.close()
    absent = _absent(arguments, probed)
    if arguments.format == "json":
        write_probes_json(probed, absent, sys.stdout)
    else:
        write_probes(probed, absent, sys.stdout, text_width(arguments, sys.stdout), text_color(arguments, sys.stdout))
    if not any(binary.placements for binary in probed):
        raise NothingToProbe("nothing to probe: no function that refleak knows was found")
    return 0


def _absent(arguments: argparse.Namespace, probed: Sequence[ProbedBinary]) -> list[Unresolved]:
    """Return the functions that the user named and that no binary has; a preset names more than any library has."""
    described = (*map(parse_type_option, arguments.types), *map(read_spec_file, arguments.specs))
    present = {placement.site.function.function for binary in probed for placement in binary.placements}
    present |= {missed.function for binary in probed for missed in binary.unresolved}
    present |= {copies.function for binary in probed for copies in binary.uncovered}
    functions = (function.spec for one in described for type_ in one.types for function in type_.functions)
    return [
        Unresolved(function.operation.name.lower(), function.type_name or "", function.function, _NOWHERE)
        for function in functions if function.function not in present and not _PATTERN.search(function.function)
    ]  # fmt: skip


def _of_command(binaries: Binaries, command: str) -> list[OpenBinary]:
    path = find_command(command)
    check_program(path)
    return start_up_binaries(binaries, path, str(Path(path).resolve()), environment=os.environ)


def _of_processes(binaries: Binaries, pids: Sequence[int]) -> list[OpenBinary]:
    check_pids(pids)
    every: dict[int, OpenBinary] = {}
    for pid in pids:
        entries = [e for e in read_maps(pid) if e.executable and e.inode and e.path.startswith("/")]
        found = (binaries.mapped(entry, paths_that_open(pid, entry)) for entry in entries)
        mapped = {binary.id: binary for binary in found if binary is not None}
        judge_mapped(binaries, pid, mapped.values())
        every |= mapped
    return list(every.values())


def _probed(opened: Iterable[OpenBinary], finder: SiteFinder) -> list[ProbedBinary]:
    found = []
    for binary in opened:
        sites = finder.find(binary.image, interposes=bool(binary.interposes))
        name = Path(binary.path).name
        found.append(ProbedBinary(name, binary.path, tuple(sites.placements), tuple(sites.unresolved),
                                  tuple(sites.uncovered)))  # fmt: skip
    return found
