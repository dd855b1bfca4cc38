"""Say what the kernel, the privileges and the tools here permit.

Each line is ok, missing or untested (with these privileges), with what it means and what to install. Where nothing
stands against it, a child that keeps one block and one reference is traced, and both must be found. The exit status is
0 where that worked, else that of the first obstacle. It changes nothing but its cache, and works without root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path

from tracer.cli import options, self_trace
from tracer.cli.reporting import text_color, text_width
from tracer.cli.step_line import StepLine
from tracer.errors import ProgramRefused
from tracer.files.cache_folder import Refused, cache_directory, open_folder
from tracer.kernel.abilities import bcc_check, kernel_checks
from tracer.kernel.instruction_costs import NEVER, known_costs
from tracer.kernel.program_checks import programs_check, programs_untested, verified_programs
from tracer.model.checks import Check, CheckState
from tracer.pipeline.steps import step
from tracer.pipeline.target_check import check_privileges, missing_capabilities
from tracer.report.check_list import write_checks, write_checks_json
from tracer.report.program_list import write_programs, write_programs_json
from tracer.symbols.tool import find_tool

NAME = "doctor"
_COSTS = {
    "nop5": "on a 5-byte nop", "nop10": "on a 10-byte nop", "push": "on a push", "branch": "on a jump",
    "other": "where it is single-stepped",
}  # fmt: skip
"""Classes of instruction (tracer.kernel.instruction_costs) in words; the kernel may refuse one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--programs", action="store_true",
        help="only load the BPF programs, and list how large each is and how much the kernel's verifier had to follow",
    )  # fmt: skip
    options.add_look(parser)
    options.add_verbose(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; return 0, or the status of the first obstacle."""
    if arguments.programs:
        return _list_programs(arguments)
    line = StepLine(sys.stderr)
    missing = missing_capabilities()
    with step(line.show, "looking at the kernel"):
        kernel = [*kernel_checks(missing), *_costs(bool(missing))]
    with step(line.show, "loading the BPF programs"):
        checks = [*kernel, *_programs(kernel, bcc_check()), *_tools(), _cache()]
    with step(line.show, "tracing a child"):
        checks.append(_trace(checks))
    if arguments.format == "json":
        write_checks_json(checks, sys.stdout)
    else:
        write_checks(checks, sys.stdout, text_width(arguments, sys.stdout), text_color(arguments, sys.stdout))
    return next((check.exit_code for check in checks if check.is_obstacle), 0)


def _list_programs(arguments: argparse.Namespace) -> int:
    """Print all programs; raises the ProgramRefused of the first that the kernel refuses."""
    check_privileges()
    programs = verified_programs(cache_directory())
    if arguments.format == "json":
        write_programs_json(programs, sys.stdout)
    else:
        write_programs(programs, sys.stdout, text_width(arguments, sys.stdout), text_color(arguments, sys.stdout))
    sys.stdout.flush()
    for program in programs:
        if program.refusal:
            raise ProgramRefused(program.refusal, program.log)
    return 0


def _programs(kernel: Sequence[Check], bcc: Check) -> tuple[Check, Check]:
    """Return what is said of BCC, and of the programs where nothing else is in the way, nor untested for want of
    privileges. Without BCC those that were compiled before and are kept will do."""
    programs = programs_untested()
    if not any(check.is_obstacle for check in kernel):
        with suppress(OSError, RuntimeError):  # no home to keep bytecode in: a trace says so
            programs = programs_check(cache_directory())
    if not bcc.is_obstacle:
        return bcc, programs
    if programs.exit_code == bcc.exit_code:  # they are not kept
        programs = programs_untested()
    if programs.state is CheckState.UNTESTED:
        return bcc, programs
    meaning = f"{bcc.meaning}; those of this version and kernel are in the cache"
    return replace(bcc, meaning=meaning, exit_code=0), programs


def _trace(checks: Sequence[Check]) -> Check:
    """Trace a child, where nothing stands against it: the proof of all that the other checks say."""
    if any(check.is_obstacle for check in checks):
        return Check(self_trace.NAME, CheckState.UNTESTED, "a child of this process, traced as a proof")
    return self_trace.self_trace()


def _costs(unprivileged: bool) -> Iterator[Check]:
    """Tell what a hit of an empty probe costs, by the instruction under it; nothing where it cannot be measured."""
    meaning = "what a probe costs by the instruction under it"
    if unprivileged:
        yield Check("costs", CheckState.UNTESTED, meaning)
        return
    with suppress(OSError, RuntimeError):
        costs = known_costs(cache_directory())
        if costs:
            shown = ", ".join(f"{costs[key] / 1000:.1f} us {words}" for key, words in _COSTS.items()
                              if isfinite(costs.get(key, NEVER)))  # fmt: skip
            shown += "".join(f"; none {_COSTS[key]}: forked children would crash" for key in _COSTS
                             if key in costs and not isfinite(costs[key]))  # fmt: skip
            yield Check("costs", CheckState.OK, f"an empty probe: {shown}")


def _tools() -> Iterator[Check]:
    """Test the tools that symbolize; one of the first two is enough."""
    llvm, gnu = find_tool("llvm-symbolizer"), find_tool("addr2line")
    if llvm:
        yield Check("symbolizer", CheckState.OK, f"{llvm}: source lines and inlined functions")
    elif gnu:
        yield Check("symbolizer", CheckState.OK, f"{gnu}: source lines and inlined functions, slower",
                    "install llvm for the faster llvm-symbolizer")  # fmt: skip
    else:
        yield Check("symbolizer", CheckState.MISSING, "without, reports have functions but no source lines",
                    "install llvm or binutils")  # fmt: skip
    fetcher = shutil.which("debuginfod-find")
    if fetcher:
        servers = "asks $DEBUGINFOD_URLS" if os.environ.get("DEBUGINFOD_URLS") else "unused: DEBUGINFOD_URLS is not set"
        yield Check("debuginfod", CheckState.OK, f"{fetcher}: {servers}")
    else:
        yield Check("debuginfod", CheckState.MISSING, "fetches debug files of distributions",
                    "install debuginfod, if a server is in reach")  # fmt: skip


def _cache() -> Check:
    meaning = "keeps bytecode and unwind tables, for a fast start"
    try:
        directory = cache_directory()
    except RuntimeError:
        return Check("cache", CheckState.MISSING, meaning, "set HOME or REFLEAK_CACHE")
    try:
        os.close(open_folder(directory))
    except Refused as error:
        return Check("cache", CheckState.MISSING, f"{directory} {error.strerror}: {meaning}",
                     "take the rights from others, or set REFLEAK_CACHE")  # fmt: skip
    except OSError:
        pass  # it is made when it is needed
    if os.access(_nearest_that_exists(directory), os.W_OK | os.X_OK):
        return Check("cache", CheckState.OK, f"{directory}: {meaning}")
    return Check("cache", CheckState.MISSING, f"{directory}: {meaning}", "make it writable, or set REFLEAK_CACHE")


def _nearest_that_exists(path: Path) -> Path:
    """Return the path, or the folder above it where it would have to be made."""
    return next(folder for folder in (path, *path.parents) if os.access(folder, os.F_OK))
