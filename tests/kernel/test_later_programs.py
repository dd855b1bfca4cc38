"""Programs that few targets need are loaded when the first such target is met, and nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

from tracer.pipeline.trace import Trace
from tracer.pipeline.trace_options import TraceOptions

PYTHON = "/usr/bin/python3"
OPENS_LATE = "import sqlite3; connections = [sqlite3.connect(':memory:') for _ in range(7)]"
"""The interpreter is linked to no SQLite: dlopen brings it. Each is closed when its object goes, at the end."""


class _Watched(Trace):
    """A trace of which can be told what its session has loaded."""

    @property
    def is_loaded(self) -> bool:
        return self._session.kernel.programs.probes.described.is_loaded


def test_a_plain_program_needs_none_of_them(targets: Path) -> None:
    trace = _Watched.launched([str(targets / "clean"), "quiet"], TraceOptions(user="root", references=True))
    trace.begin()
    try:
        trace.run()
        assert not trace.snapshot().losses
        assert not trace.is_loaded
    finally:
        trace.close()


def test_a_described_function_that_comes_by_dlopen_has_them() -> None:
    options = TraceOptions(user="root", heap=False, mappings=False, interpreters=False, presets=("sqlite3",))
    trace = _Watched.launched([PYTHON, "-I", "-c", OPENS_LATE], options)
    trace.begin()
    try:
        assert not trace.is_loaded
        trace.run()
        snapshot = trace.snapshot()
    finally:
        trace.close()
    [row] = [row for row in snapshot.type_totals if snapshot.types[row.type] == "sqlite3"]
    assert trace.is_loaded
    assert (snapshot.losses, row.created, row.destroyed) == ((), 7, 7)
