"""Propose a spec for a binary's own reference counts.

Functions that pair by their names (x__get and x__put, x_ref and x_unref, x_new and x_free, ...) are confirmed by
DWARF where there is some: they work on the same struct, and it has a counter. Of a library without DWARF the installed
headers tell the types, as gcc reads them: what is returned, what is stored where a parameter points, and what is ended.
Types that a function sets up where the caller has them are commented out, since clearing one twice may be harmless.
The output is a spec in TOML, ready for `refleak --spec FILE`.

With --try a command is traced under that spec: one that makes and ends such objects, and does it right, such as a test
of the library. What it disproves is commented out with the reason; each function has its number of calls beside it.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from tracer.cli.standard_streams import stdout_is_stderr
from tracer.cli.step_line import StepLine
from tracer.dwarf.debug_facts import DebugFacts, read_debug_facts
from tracer.elf.debug_files import DebugFiles, has_dwarf
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, Symbol, read_symbol_table
from tracer.errors import NothingToProbe, UsageError
from tracer.model.trial import Trial
from tracer.model.visible import visible
from tracer.pipeline.report_file import report_file
from tracer.pipeline.steps import step
from tracer.specs.counter_code import added_to_counter, set_at
from tracer.specs.discovery import Proposal, discover, without_numbers
from tracer.specs.filled_arguments import calls_others, fills_first_argument
from tracer.specs.headers import read_prototypes
from tracer.specs.in_place import set_up_in_place
from tracer.specs.methods import counted_classes
from tracer.specs.returned_numbers import returns_number
from tracer.specs.toml_text import spec_text
from tracer.specs.trial_verdict import TypeVerdict, disproved, judge_proposal

NAME = "discover"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("binary", metavar="BINARY", type=Path)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the spec there")
    parser.add_argument("--counted", action="store_true", help="only types that have gets and puts")
    parser.add_argument("--no-headers", action="store_true", help="do not look for the library's headers")
    parser.add_argument("--debug-dir", action="append", default=[], metavar="DIR",
                        help="look for separate debug files there too")  # fmt: skip
    parser.add_argument("--try", dest="trial", nargs=argparse.REMAINDER, metavar="CMD ...",
                        help="run CMD under the spec, and comment out what that disproves")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write the spec; raises NothingToProbe where nothing pairs, or where the command of --try has none of it."""
    if arguments.trial is not None and not arguments.trial:
        raise UsageError("--try without a command", "give it last: refleak discover LIBRARY --try CMD ...")
    with step(StepLine(sys.stderr).show, f"reading {visible(arguments.binary.name)}"):
        found, pattern, facts, declared = _found(arguments)
    proposals = [p for p in found if not p.doubt or (p.is_in_place and arguments.trial)]
    doubted = [p for p in found if p not in proposals]
    if not found or (arguments.trial and not proposals):
        raise NothingToProbe(
            f"{arguments.binary} has no functions that pair", "describe them yourself: see docs/specs.md"
        )
    text = spec_text(arguments.binary.name, pattern, [*proposals, *doubted])
    _summarise(proposals, len(doubted), facts, declared)
    if arguments.trial:
        tried = [replace(proposal, is_in_place=False) for proposal in proposals]
        trial = _tried(arguments, spec_text(arguments.binary.name, pattern, tried))
        verdicts = [judge_proposal(proposal, trial) for proposal in proposals]
        text = spec_text(arguments.binary.name, pattern, [*proposals, *doubted], verdicts, _how_it_went(trial))
        _summarise_trial(trial, verdicts)
    _write(text, arguments.output)
    return 0


def _found(arguments: argparse.Namespace) -> tuple[list[Proposal], str, DebugFacts, Collection[str]]:
    """Return what pairs, the pattern of the library's name, what is known of functions, and which headers declare."""
    with Image.open(arguments.binary) as image:
        symbols = {one.name: one for one in read_symbol_table(image).matching("*") if one.kind == STT_FUNC}
        names = set(symbols)
        pattern = image.soname.partition(".so")[0] + ".so*" if image.soname else arguments.binary.name
        facts = _facts(image, arguments.debug_dir)
        library = image.soname.partition(".so")[0].removeprefix("lib") if image.soname else ""
        declared = {} if facts.functions or not library or arguments.no_headers else read_prototypes(names, library)
        facts.functions.update(declared)
        found = [p for p in discover(names, facts, declared) if p.gets or not arguments.counted]
        code = partial(_code_of, image, symbols)
        found = list(without_numbers(found, facts, lambda name: returns_number(*code(name))))
        found[:0] = counted_classes(
            names, lambda name, number: added_to_counter(*code(name), number),
            lambda name, offset: set_at(*code(name), offset),
        )  # fmt: skip
        if not arguments.counted:
            ends = {put.partition("(")[0] for proposal in found for put in proposal.puts}
            found += set_up_in_place(
                names, facts, lambda name: fills_first_argument(*code(name)), lambda name: calls_others(*code(name)),
                ends,
            )  # fmt: skip
    return found, pattern, facts, declared


def _tried(arguments: argparse.Namespace, spec: str) -> Trial:
    """Run the command; what it prints is kept apart from a spec that goes to standard output."""
    from tracer.cli.trace import handle_signals
    from tracer.pipeline.trial import run_trial

    line = StepLine(sys.stderr, enabled=True)
    try:
        with nullcontext() if arguments.output is not None else stdout_is_stderr():
            return run_trial(arguments.trial, spec, line.show, handle_signals)
    except KeyboardInterrupt:  # from when it runs, interrupts are handled
        raise KeyboardInterrupt(f"before {arguments.trial[0]} was started") from None


def _how_it_went(trial: Trial) -> str:
    ended = "it did not end" if trial.exit_status is None else f"exit status {trial.exit_status}"
    lost = f"; nothing is disproved: {'; '.join(trial.losses)}" if trial.losses else ""
    return f"Tried with: {visible(shlex.join(trial.command))} ({ended}){lost}"


def _summarise_trial(trial: Trial, verdicts: Sequence[TypeVerdict]) -> None:
    called = sum(bool(row.calls) for row in trial.functions.values())
    of_all = sum(len(verdict.remarks) for verdict in verdicts)
    said = f"{called} of {of_all} functions were called, {disproved(verdicts)} are disproved"
    if not called:
        said = f"none of {of_all} functions was called: does it use this library?"
    print(f"refleak: {_how_it_went(trial)}: {said}", file=sys.stderr)


def _facts(image: Image, directories: list[str]) -> DebugFacts:
    if has_dwarf(image):
        return read_debug_facts(image)
    found = DebugFiles(directories).find(image.path, image.build_id, image)
    if found is None:
        return DebugFacts()
    with Image.open(found.path) as debug:
        return read_debug_facts(debug)


def _write(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    with report_file(path) as file:
        file.write(text.encode())


def _code_of(image: Image, symbols: Mapping[str, Symbol], name: str) -> tuple[bytes, int]:
    """Return the code of a function and its address; no code where it has none here, which tells nothing."""
    symbol = symbols.get(name)
    at = image.file_offset_of(symbol.address) if symbol is not None else None
    return (b"", 0) if symbol is None or at is None else (bytes(image.data[at : at + symbol.size]), symbol.address)


def _summarise(proposals: list[Proposal], doubted: int, facts: DebugFacts, declared: Collection[str]) -> None:
    counted, by_code = sum(bool(p.gets) for p in proposals), sum(p.is_by_code for p in proposals)
    confirmed = sum(p.confirmed and not p.is_by_code for p in proposals)
    how = f"{confirmed} confirmed by {'headers' if declared else 'DWARF'}"
    if not facts.functions and by_code < len(proposals):
        how = "by name alone: the binary has no DWARF, and no headers of its library were found"
    if by_code:
        how = f"{by_code} confirmed by code" + (f", {how}" if by_code < len(proposals) else "")
    out = f"; {doubted} more {'is' if doubted == 1 else 'are'} commented out" if doubted else ""
    print(f"refleak: {len(proposals)} types proposed, {counted} of them counted; {how}{out}", file=sys.stderr)
