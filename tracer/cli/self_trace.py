"""Prove that tracing works: a child that keeps one block and one reference, traced like any other process."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tracer.api import Selection, Trace, TraceOptions
from tracer.errors import RefleakError, TraceFails
from tracer.late_dataclasses import dataclass
from tracer.model.checks import Check, CheckState
from tracer.model.snapshot import Snapshot

NAME = "trace"
_BLOCK_BYTES = 104_729
"""A prime, of which the child makes no other block: only those are kept."""
_PATIENCE_SECONDS = 30.0


@dataclass
class _Child:
    """A copy of this process, which waits until it is told to go on."""

    pid: int
    go: int

    def release(self) -> None:
        os.write(self.go, b"g")


def _keep(told: int) -> None:
    """What the child does: wait, keep one block and one open stream, and end."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
    if os.read(told, 1):
        libc.malloc(_BLOCK_BYTES)
        libc.fopen(b"/proc/self/status", b"r")


@contextmanager
def _child() -> Iterator[_Child]:
    told, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go)
            _keep(told)
        finally:
            os._exit(0)
    os.close(told)
    try:
        yield _Child(pid, go)
    finally:
        os.close(go)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _traced(child: _Child) -> Snapshot:
    selection = Selection(min_size=_BLOCK_BYTES, max_size=_BLOCK_BYTES)
    trace = Trace.attached((child.pid,), TraceOptions(
        references=False, mappings=False, presets=("stdio",), follow_forks=False, duration_s=_PATIENCE_SECONDS,
        selection=selection, interpreters=False,
    ))  # fmt: skip
    trace.begin()
    try:
        child.release()
        trace.run()
        return trace.snapshot()
    finally:
        trace.close()


def self_trace() -> Check:
    """Trace a child of this process; return whether its block and its reference were seen, and nothing was lost."""
    meaning = "a child of this process keeps a block and a reference"
    try:
        with _child() as child:
            snapshot = _traced(child)
    except RefleakError as error:
        return Check(NAME, CheckState.MISSING, f"{meaning}; a trace of it fails: {error}", error.hint, error.exit_code)
    blocks, references = len(snapshot.allocations), int(snapshot.objects["count"].sum())
    lost = sum(loss.count for loss in snapshot.losses)
    if (blocks, references, lost) == (1, 1, 0):
        return Check(NAME, CheckState.OK, f"{meaning}: both found")
    seen = f"blocks found: {blocks}, references: {references}, events lost: {lost}"
    return Check(NAME, CheckState.MISSING, f"{meaning}; {seen}", TraceFails.hint, TraceFails.exit_code)
