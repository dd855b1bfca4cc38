"""Propose a spec for a binary's own reference counts.

Functions that pair by their names (x__get and x__put, x_ref and x_unref, x_new and x_free, ...) are confirmed by
DWARF where there is some: they work on the same struct, and it has a counter. Of a library without DWARF the installed
headers tell the types, as gcc reads them: what is returned, what is stored where a parameter points, and what is ended.
The output is a spec in TOML, ready for `refleak --spec FILE`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from tracer.dwarf.debug_facts import DebugFacts, read_debug_facts
from tracer.elf.debug_files import DebugFiles, has_dwarf
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.errors import NothingToProbe
from tracer.pipeline.report_file import report_file
from tracer.specs.discovery import Proposal, discover
from tracer.specs.headers import read_prototypes
from tracer.specs.toml_text import spec_text

NAME = "discover"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("binary", metavar="BINARY", type=Path)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the spec there")
    parser.add_argument("--counted", action="store_true", help="only types that have gets and puts")
    parser.add_argument("--no-headers", action="store_true", help="do not look for the library's headers")
    parser.add_argument("--debug-dir", action="append", default=[], metavar="DIR",
                        help="look for separate debug files there too")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write the spec; raises NothingToProbe where nothing pairs."""
    with Image.open(arguments.binary) as image:
        names = {symbol.name for symbol in read_symbol_table(image).matching("*") if symbol.kind == STT_FUNC}
        pattern = image.soname.partition(".so")[0] + ".so*" if image.soname else arguments.binary.name
        facts = _facts(image, arguments.debug_dir)
        library = image.soname.partition(".so")[0].removeprefix("lib") if image.soname else ""
    declared = {} if facts.functions or not library or arguments.no_headers else read_prototypes(names, library)
    facts.functions.update(declared)
    proposals = [p for p in discover(names, facts, declared) if p.gets or not arguments.counted]
    if not proposals:
        raise NothingToProbe(
            f"{arguments.binary} has no functions that pair", "describe them yourself: see docs/specs.md"
        )
    _write(spec_text(arguments.binary.name, pattern, proposals), arguments.output)
    _summarise(proposals, facts, declared)
    return 0


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


def _summarise(proposals: list[Proposal], facts: DebugFacts, declared: Collection[str]) -> None:
    counted, confirmed = sum(bool(p.gets) for p in proposals), sum(p.confirmed for p in proposals)
    how = f"{confirmed} confirmed by {'headers' if declared else 'DWARF'}"
    if not facts.functions:
        how = "by name alone: the binary has no DWARF, and no headers of its library were found"
    print(f"refleak: {len(proposals)} types proposed, {counted} of them counted; {how}", file=sys.stderr)
