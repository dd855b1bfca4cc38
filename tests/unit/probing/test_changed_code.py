"""Code in memory against its file, in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.probing import changed_code
from tracer.probing.changed_code import is_changed, lacks_breakpoints, without_breakpoint

PUSH = bytes.fromhex("554889e5")
NOP5 = bytes.fromhex("0f1f440000")
NOP10 = bytes.fromhex("662e0f1f840000000000")


@pytest.mark.parametrize(
    ("in_file", "in_memory", "changed"),
    [
        (PUSH, PUSH, False),
        (PUSH, b"\xcc" + PUSH[1:], False),  # another tracer's
        (PUSH, bytes.fromhex("e900000000"), True),
        (NOP5, b"\xcc" + NOP5[1:], False),
        (NOP5, bytes.fromhex("e844332211"), False),  # the kernel's call, where another tracer's probe was hit
        (NOP10, bytes.fromhex("488d642480e844332211"), False),
        (NOP5, bytes.fromhex("e944332211"), True),
    ],
)
def test_who_changes_code(in_file: bytes, in_memory: bytes, changed: bool) -> None:
    memory = ctypes.create_string_buffer(in_memory.ljust(64, b"\x90"), 64)
    start = ctypes.addressof(memory)
    mapping: Any = SimpleNamespace(start=start, end=start + 64, file_offset=0x1000)
    binary: Any = SimpleNamespace(code_at=lambda place: in_file.ljust(16, b"\x90"))
    assert is_changed(os.getpid(), mapping, binary, [0x1000]) is changed


def in_file(code_at: Callable[[int], bytes]) -> Any:
    return SimpleNamespace(id=7, code_at=code_at, first_byte=lambda place: code_at(place)[0])


@pytest.mark.parametrize("can_read_all", [True, False])
def test_places_that_have_no_breakpoint(monkeypatch: pytest.MonkeyPatch, can_read_all: bool) -> None:
    """What a process itself may not read is read one by one."""
    if not can_read_all:
        monkeypatch.setattr(changed_code, "bytes_at", lambda *_: None)
    memory = ctypes.create_string_buffer(b"\xcc\x90\x55\xe8", 64)
    start = ctypes.addressof(memory)
    mapping: Any = SimpleNamespace(start=start, end=start + 64, file_offset=0x1000)
    binary: Any = in_file(lambda place: {0x1003: NOP5}.get(place, PUSH))
    places = [0x1000, 0x1002, 0x1003, 0x2002]
    assert without_breakpoint(os.getpid(), mapping, binary, places) == [0x1002]


@pytest.mark.parametrize(
    ("probed", "lacks"), [({7: {0x1000}}, False), ({7: {0x1000, 0x1002}}, True), ({8: {0x1002}}, False)]
)
def test_only_what_was_probed_in_the_process_can_be_lacked(probed: dict[int, set[int]], lacks: bool) -> None:
    """With --preload libc's malloc has no probe."""
    memory = ctypes.create_string_buffer(b"\xcc\x90\x55\xe8", 64)
    start = ctypes.addressof(memory)
    mapping: Any = SimpleNamespace(start=start, end=start + 64, file_offset=0x1000)
    binary: Any = in_file(lambda place: PUSH)
    assert lacks_breakpoints(os.getpid(), [(mapping, binary, 0)], probed) is lacks
