"""What a file says was found: a recording is analysed again, a JSON report is taken at its word.

Of a report's entries only that is judged again what sets them aside.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.setting_aside import set_aside_again
from tracer.errors import CannotRead
from tracer.files.plain_file import read_plain, read_start
from tracer.model.findings import Findings
from tracer.model.frames import Frame, Symbols
from tracer.model.snapshot import Binary
from tracer.recording.chunks import MAGIC
from tracer.recording.reader import read_recording
from tracer.recording.recording import Recording
from tracer.report.json_reader import read_json
from tracer.symbols.class_names import class_names
from tracer.symbols.options import SymbolOptions
from tracer.symbols.symbolizer import symbolize

_LARGEST_REPORT = 1 << 28


def read_findings(path: Path, arguments: argparse.Namespace, options: AnalysisOptions) -> Findings:
    """Return the findings of a recording or a JSON report. Raises CannotRead."""
    try:
        if read_start(path, len(MAGIC)) != MAGIC:
            return set_aside_again(read_json(read_plain(path, _LARGEST_REPORT), str(path)), options)
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}", "check the path") from None
    recording = read_recording(path)
    snapshot = recording.snapshot
    if not arguments.no_demangle:
        snapshot = replace(snapshot, types=class_names(snapshot.types))
    return analyse(snapshot, symbols_of(recording, arguments), options)


def symbols_of(recording: Recording, arguments: argparse.Namespace) -> Symbols:
    """Return the symbols of a recording, or look them up in the binaries that are here.

    They are looked up anew, where the binaries are, if the user names other debug files or wants names as linked.
    """
    embedded = recording.symbols
    if embedded is not None and not arguments.debug_dir and not arguments.no_demangle:
        return embedded
    keys = set(chain.from_iterable(stack.frames for stack in recording.snapshot.stacks.values()))
    options = SymbolOptions(demangle=not arguments.no_demangle, debug_directories=tuple(arguments.debug_dir))
    binaries = [_identified(binary) for binary in recording.snapshot.binaries]
    snapshot = recording.snapshot
    found = symbolize(keys, binaries, options, generated=snapshot.generated, callers=snapshot.heap_callers)
    return {key: _better(frames, (embedded or {}).get(key)) for key, frames in found.items()}


def _identified(binary: Binary) -> Binary:
    """Without a build id nothing tells whether a file here is the one that ran: take it for gone."""
    return binary if binary.build_id is not None else replace(binary, deleted=True)


def _better(found: tuple[Frame, ...], embedded: tuple[Frame, ...] | None) -> tuple[Frame, ...]:
    return embedded if embedded and all(frame.function is None for frame in found) else found
