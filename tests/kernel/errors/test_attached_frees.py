"""Wrong frees of a process that is attached to are told where they are certain, and of what is older none."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from bad_frees_program import build_bad_frees
from test_wrong_frees import POOL

import tracer
from tracer.model.findings import FrameList

QUIET = tracer.TraceOptions(types=(POOL,), allow_missing=True)


@pytest.fixture(scope="module")
def bad_frees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_bad_frees(tmp_path_factory.mktemp("attached"))


def attached(program: Path, case: str) -> tuple[tracer.Report, int]:
    """Return the report of a case that ran after the attach, and how it ended."""
    with subprocess.Popen([program, case, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        assert target.stdout.readline() == b"ready\n"
        with tracer.attach(target.pid, QUIET) as running:
            target.stdin.write(b"x")
            running.wait()
        return running.report, target.wait()


def named(stack: FrameList | None, count: int) -> list[str | None]:
    return [frame.function for frame in stack or ()][:count]


CERTAIN = (
    ("inner", "invalid-free", "24 bytes inside a block of 101", "malloc"),
    ("inner-realloc", "invalid-free", "24 bytes inside a block of 101", "malloc"),
    ("stack", "invalid-free", "on the stack of main", None),
    ("data", "invalid-free", "in variable data of bad_frees", None),
    ("behind", "invalid-free", "never allocated: malloc's blocks are at multiples of 16 bytes", None),
    ("pools", "mismatched-free", "a block of 101 bytes that pool made", "pool_alloc"),
)  # fmt: skip


@pytest.mark.parametrize(("case", "kind", "reason", "maker"), CERTAIN, ids=[case for case, *_ in CERTAIN])
def test_what_is_certain_is_told(bad_frees: Path, case: str, kind: str, reason: str, maker: str | None) -> None:
    report, status = attached(bad_frees, case)
    (error,) = report.errors
    assert (error.kind, error.count, error.reason, status) == (kind, 1, reason, -signal.SIGABRT)
    assert named(error.stack, 2) == ["again_by_realloc" if case == "inner-realloc" else "again", "main"]
    assert named(error.created_at, 1) == ([maker] if maker else [])
    assert [note for note in report.findings.notes if "free" in note] == ["2 frees of something older than the trace"]


def test_a_block_that_is_older_than_the_trace_is_freed_twice(bad_frees: Path) -> None:
    (error,) = attached(bad_frees, "older")[0].errors
    assert (error.kind, error.count, error.created_at) == ("double-free", 1, None)
    assert error.reason == "a block older than the trace, freed earlier: the place was not kept"
    assert named(error.stack, 3) == ["again", "use_older", "main"]


def test_a_block_that_is_older_than_the_trace_whose_size_was_written_over(bad_frees: Path) -> None:
    """libc aborts in its free, which breaks no rule."""
    report, status = attached(bad_frees, "older-overwritten")
    assert (status, report.errors) == (-signal.SIGABRT, ())
