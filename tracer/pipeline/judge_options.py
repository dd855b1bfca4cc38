"""Judge options: how what a trace saw is to be named and judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import Rule, parse_suppressions
from tracer.errors import CannotRead
from tracer.files.plain_file import read_named
from tracer.late_dataclasses import dataclass
from tracer.pipeline.linked_names import with_written_names
from tracer.symbols.options import SymbolOptions

_LARGEST_SUPPRESSIONS = 1 << 24


@dataclass(frozen=True)
class JudgeOptions:
    suppressions: tuple[Path, ...] = ()
    """Files with leaks to pass over, in LeakSanitizer's syntax or valgrind's."""
    default_suppressions: bool = True
    """Pass over one-off allocations of libc."""
    demangle: bool = True
    """Call C++ and Rust functions and classes as they are written."""
    debug_directories: tuple[str, ...] = ()
    """Where to look for separate debug files too."""
    older_ns: int = 0
    """List only what is at least so old at the end of its process, or of the trace."""
    baseline: Path | None = None
    """A recording or JSON report: only what is new or has grown counts."""
    sums_inherited: bool = False
    """Of many thousand blocks that forked children have of their parents, tell only how much each child has: that is
    all that is read of them, but in JSON and in the page."""

    @property
    def symbols(self) -> SymbolOptions:
        return SymbolOptions(demangle=self.demangle, debug_directories=self.debug_directories)

    @cached_property
    def analysis(self) -> AnalysisOptions:
        """What the analysis is told. The files are read once: one may be a pipe. Raises CannotRead and SpecInvalid."""
        rules = tuple(_suppressions(self.suppressions))
        return AnalysisOptions(
            with_written_names(rules) if self.demangle else rules, default_suppressions=self.default_suppressions,
            older_ns=self.older_ns, sums_inherited=self.sums_inherited,
        )


def check(options: JudgeOptions) -> None:
    """Raise what is wrong with suppressions and directories that the options name, before anything is traced."""
    _ = options.analysis
    for directory in options.debug_directories:
        if not Path(directory).is_dir():
            raise CannotRead(f"there is no directory {directory}", "check the path after --debug-dir")


def _suppressions(paths: Iterable[Path]) -> Iterator[Rule]:
    for path in paths:
        try:
            yield from parse_suppressions(read_named(path, _LARGEST_SUPPRESSIONS).decode(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text"
            raise CannotRead(f"cannot read {path}: {reason}", "check the path after --suppressions") from None
