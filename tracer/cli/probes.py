"""Say what would be probed and what not, and why, without running anything.

Lists every site in a program and the libraries that it starts with, or in what a process (-p) has mapped now: where
the probe sits, on which instruction, and what a hit costs there. Root is needed for processes of others only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from tracer.capture.binaries import Binaries, OpenBinary
from tracer.capture.follower import start_up_binaries
from tracer.capture.launch import find_command
from tracer.cli import options
from tracer.cli.site_finder import SiteFinder, site_finder
from tracer.cli.target_check import check_pid, check_program
from tracer.errors import NothingToProbe, UsageError
from tracer.model.probed import ProbedBinary
from tracer.procfs.maps import paths_that_open, read_maps
from tracer.report.probe_list import write_probes, write_probes_json

NAME = "probes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", "--pid", type=int, metavar="PID", help="look at a running process")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD ...", help="the program to look at; it is not run"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options.add_kinds(parser)
    options.add_specs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the probes; raises NothingToProbe where there would be none."""
    if (arguments.pid is None) == (not arguments.command):
        raise UsageError("say what to look at: a command or -p PID", "refleak probes --help")
    binaries = Binaries()
    try:
        opened = _of_command(binaries, arguments.command[0]) if arguments.command else _of_process(
            binaries, arguments.pid
        )
        probed = _probed(opened, site_finder(arguments))
    finally:
        binaries.close()
    write = write_probes_json if arguments.format == "json" else write_probes
    write(probed, sys.stdout)
    if not any(binary.placements for binary in probed):
        raise NothingToProbe("nothing to probe: no function that refleak knows was found")
    return 0


def _of_command(binaries: Binaries, command: str) -> list[OpenBinary]:
    path = find_command(command)
    check_program(path)
    return start_up_binaries(binaries, path, str(Path(path).resolve()))


def _of_process(binaries: Binaries, pid: int) -> list[OpenBinary]:
    check_pid(pid)
    entries = [e for e in read_maps(pid) if e.executable and e.inode and e.path.startswith("/")]
    found = (binaries.mapped(entry, paths_that_open(pid, entry)) for entry in entries)
    return list({binary.id: binary for binary in found if binary is not None}.values())


def _probed(opened: Iterable[OpenBinary], finder: SiteFinder) -> list[ProbedBinary]:
    found = []
    for binary in opened:
        placements, unresolved = finder.find(binary.image)
        found.append(ProbedBinary(Path(binary.path).name, binary.path, tuple(placements), tuple(unresolved)))
    return found
