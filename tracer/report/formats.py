"""All formats of the report: their names, suffixes and writers."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import BinaryIO, TextIO

from tracer.errors import UsageError
from tracer.late_dataclasses import dataclass
from tracer.lazy_names import called_later
from tracer.model.findings import Findings
from tracer.report.text_options import TextOptions


@dataclass(frozen=True)
class ReportOptions:
    """What the user may choose about a report; a format takes what concerns it."""

    text: TextOptions = field(default_factory=TextOptions)
    source_root: str | None = None
    """An absolute directory: formats that point into sources name what lies below relative to it."""


TextWriter = Callable[[Findings, TextIO, ReportOptions], None]
BinaryWriter = Callable[[Findings, BinaryIO], None]


@dataclass(frozen=True)
class Format:
    """One format; it has either a writer of text or one of bytes."""

    name: str
    suffixes: tuple[str, ...]
    says: str
    """What it is, for `--help` and the documentation."""
    write: TextWriter | None = None
    write_binary: BinaryWriter | None = None
    needs_freed: bool = False
    """Whether it tells what was freed: AnalysisOptions.freed_stacks."""
    needs_inherited: bool = False
    """Whether it tells more than sums of what forked children have of their parents."""


def _later(module: str, name: str) -> Callable[..., None]:
    """Return a writer of this package, which is imported when it writes."""
    return called_later(f"tracer.report.{module}", name)


def _plain(module: str, name: str) -> TextWriter:
    write = _later(module, name)
    return lambda findings, stream, _: write(findings, stream)


def _by_sources(module: str, name: str) -> TextWriter:
    """Return the writer of a format that points into sources, and lists what the text does."""
    write = _later(module, name)
    return lambda findings, stream, options: write(findings, stream, options.source_root, options.text.show)


FORMATS = (
    Format("text", (".txt",), "for people",
           lambda findings, stream, options: _later("text", "write_text")(findings, stream, options.text)),
    Format("json", (".json",), "for programs: docs/report.schema.json", _plain("json_report", "write_json"),
           needs_inherited=True),
    Format("html", (".html", ".htm"), "one interactive page", _plain("html_page", "write_html"),
           needs_inherited=True),
    Format("markdown", (".md",), "for a merge request",
           lambda findings, stream, options: _later("markdown", "write_markdown")(
               findings, stream, options.text.top, options.text.show)),
    Format("svg", (".svg",), "flame graph as a picture", _plain("flame_svg", "write_flame_svg")),
    Format("pprof", (".pb.gz",), "profile.proto, for pprof", write_binary=_later("pprof", "write_pprof"),
           needs_freed=True),
    Format("gperftools", (".heap",), "heap profile of gperftools, as text", _plain("gperftools", "write_heap_profile"),
           needs_freed=True),
    Format("folded", (".folded",), "stacks by bytes, for flamegraph.pl", _plain("folded", "write_folded")),
    Format("folded-objects", (".objects.folded",), "stacks by objects", _plain("folded", "write_folded_objects")),
    Format("speedscope", (".speedscope.json",), "for speedscope", _plain("speedscope", "write_speedscope")),
    Format("sarif", (".sarif", ".sarif.json"), "for code scanning: SARIF 2.1.0", _by_sources("sarif", "write_sarif")),
    Format("junit", (".xml",), "for test dashboards: JUnit's XML", _by_sources("junit", "write_junit")),
    Format("xunit", (".xunit.xml",), "the same as the schemas of Ant and of Jenkins' xUnit plugin have it",
           _by_sources("junit_by_schema", "write_junit_by_schema")),
)  # fmt: skip
_FOREIGN_SUFFIXES = {
    ".pdf": ".html", ".xhtml": ".html", ".csv": ".json", ".yaml": ".json", ".yml": ".json", ".png": ".svg",
    ".pb": ".pb.gz", ".prof": ".pb.gz", ".pprof": ".pb.gz",
}
"""What would be text under the name of something else, and what is nearest to it."""
_TEXT_SUFFIXES = ("", ".text", ".log", ".out")
NAMES = tuple(format_.name for format_ in FORMATS)


def format_for(name: str | None, output: Path | None) -> Format:
    """Return the format of that name, or else of the file's longest suffix that fits, or else text.

    Raises UsageError for a binary one without a file, and for a suffix that promises what is not written.
    """
    if name is not None:
        chosen = next(format_ for format_ in FORMATS if format_.name == name)
    else:
        chosen = _by_suffix(output.name.lower()) if output is not None else FORMATS[0]
    if chosen.write is None and output is None:
        raise UsageError(f"{chosen.name} is no text", f"give it a file: -o leaks{chosen.suffixes[0]}")
    return chosen


def write_to_file(chosen: Format, findings: Findings, file: BinaryIO, options: ReportOptions) -> None:
    """Write in any format; text as UTF-8, in which names that are none show their bytes."""
    if chosen.write_binary is not None:
        chosen.write_binary(findings, file)
    elif chosen.write is not None:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        chosen.write(findings, text, options)
        text.detach()


def format_named(text: str) -> str:
    """Return the name of the format that is meant: in capitals, or by its suffix; the text itself where none is."""
    name = text.lower()
    return next((one.name for one in FORMATS if name == one.name or f".{name}" in one.suffixes), text)


def _by_suffix(file_name: str) -> Format:
    fitting = [(suffix, format_) for format_ in FORMATS for suffix in format_.suffixes if file_name.endswith(suffix)]
    if fitting:
        return max(fitting, key=lambda pair: len(pair[0]))[1]
    suffix = PurePath(file_name).suffix
    meant = _meant_by(suffix)
    if meant is not None:
        raise UsageError(f"there is no format for {suffix}", f"did you mean -o FILE{meant}? --format text writes text")
    return FORMATS[0]


def _meant_by(suffix: str) -> str | None:
    """Return which suffix a foreign or misspelt one comes nearest to; None where it may well stand for text."""
    if suffix in _FOREIGN_SUFFIXES or suffix in _TEXT_SUFFIXES:
        return _FOREIGN_SUFFIXES.get(suffix)
    if len(suffix) < len(".xyz"):
        return None
    known = [f".{format_.suffixes[0].rpartition('.')[2]}" for format_ in FORMATS if format_.write is not None]
    return next(iter(get_close_matches(suffix, [*known, ".refleak"], 1, 0.75)), None)
