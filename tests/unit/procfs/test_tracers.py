"""Debuggers are told from others that trace a process by their names."""

from __future__ import annotations

import os

import pytest

from tracer.procfs.tracers import _DEBUGGER, debugger_of


@pytest.mark.parametrize("name", ["gdb", "gdb-multiarch", "lldb-14", "lldb-server-19", "gdbserver", "rr", "dlv"])
def test_who_sets_breakpoints(name: str) -> None:
    assert _DEBUGGER.fullmatch(name)


@pytest.mark.parametrize("name", ["strace", "ltrace", "python3", "gdbus", "rrdtool", "my-gdb"])
def test_who_does_not(name: str) -> None:
    assert not _DEBUGGER.fullmatch(name)


def test_nobody_traces_this_process_and_none_that_is_gone() -> None:
    assert debugger_of(os.getpid()) is None
    assert debugger_of(1 << 22) is None
