"""Which interpreters are known, and what is said of the others."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.guests.lua_layout import LAYOUTS, VERSIONS, lua_version, luajit_version
from tracer.guests.python_layout import python_layout, version_text
from tracer.model import records

V311, V312, V313 = 0x030B02F0, 0x030C01F0, 0x030D00F0
PUBLISHED_3_13 = (
    (343864, 1392, 632),  # _PyRuntimeState
    (362936, 7272, 7264, 7344, 7664, 7952, 8088, 8096, 7256, 0, 0, 0, 0),  # PyInterpreterState
    (328, 0, 8, 16, 72, 152, 160, 280, 28),  # PyThreadState
    (80, 8, 0, 56, 72, 70),  # _PyInterpreterFrame
    (208, 112, 120, 128, 136, 68, 52, 96, 104, 200),  # PyCodeObject
)
"""Offsets of 3.13.0; of those that refleak does not read, some are made up."""


def runtime(version: int = V313, *, cookie: bytes = b"xdebugpy", free_threaded: int = 0) -> bytes:
    numbers = [number for struct_ in PUBLISHED_3_13 for number in struct_]
    return struct.pack("<8sQQ", cookie, version, free_threaded) + struct.pack(f"<{len(numbers)}Q", *numbers) + bytes(80)


def test_what_3_13_publishes() -> None:
    layout = python_layout(V313, runtime(), ())
    assert layout == {
        "interpreters": 632, "next_interpreter": 7264, "threads": 7344, "next_thread": 8, "thread_id": 152,
        "current": 72, "c_frame": 0, "c_frame_current": 0, "c_frame_previous": 0, "code": 0, "previous": 8,
        "instruction": 56, "mark": 70, "mark_value": 3, "mark_is_frame": 0, "first_instruction": 200, "first_line": 68,
        "file": 112, "name": 128, "line_table": 136, "by_content": 0, "ascii_text": 40, "wide_text": 56,
    }  # fmt: skip


@pytest.mark.parametrize("version", [V311, V312])
def test_older_ones_are_known_by_their_version(version: int) -> None:
    layout = python_layout(version, b"", ())
    assert not isinstance(layout, str)
    assert set(layout) | {"runtime", "code_type", "reserved"} == set(records.PYTHON.names or ())


@pytest.mark.parametrize(
    ("version", "head", "symbols", "why"),
    [
        (0x030A0DF0, b"", (), "CPython 3.10.13 is older than 3.11"),
        (0x030E00F0, runtime(0x030E00F0), (), "CPython 3.14.0 is newer than refleak"),
        (V311, b"", ("_Py_RefTotal",), "CPython 3.11.2 is a debug build"),
        (V313, b"", (), "CPython 3.13.0 does not say where its frames are"),
        (V313, runtime(cookie=b"xdebugpx"), (), "CPython 3.13.0 does not say where its frames are"),
        (V313, runtime(0x030D01F0), (), "CPython 3.13.0 says that it is 3.13.1"),
        (V313, runtime(free_threaded=1), (), "CPython 3.13.0 is a free-threaded build"),
    ],
)
def test_what_is_not_walked_and_why(version: int, head: bytes, symbols: tuple[str, ...], why: str) -> None:
    assert python_layout(version, head, symbols) == why


@given(st.binary(min_size=0, max_size=400))
def test_any_bytes_after_the_cookie(tail: bytes) -> None:
    layout = python_layout(V313, struct.pack("<8sQQ", b"xdebugpy", V313, 0) + tail, ())
    assert isinstance(layout, str) or all(0 <= offset < 1 << 16 for offset in layout.values())


def test_version_text() -> None:
    assert version_text(V311) == "3.11.2"


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (b"\0$Lua: Lua 5.1.5 Copyright (C)\0", "Lua 5.1"),
        (b"..$LuaVersion: Lua 5.4.4  Copyright", "Lua 5.4"),
        (b"$LuaVersion: Lua 5.5.0  Copyright", None),
        (b"LuaJIT 2.1.0-beta3", None),
        (b"$LuaVersion: Lua 5.3.6 $LuaVersion: Lua 5.4.4 ", None),
    ],
)
def test_the_version_of_lua(image: bytes, version: str | None) -> None:
    assert lua_version(image) == version == (version if version in VERSIONS else None)


def test_every_lua_layout_is_whole() -> None:
    for layout in LAYOUTS.values():
        assert {*layout, "reserved"} == set(records.LUA.names or ())


DEBIAN_12 = {
    "lua_status": bytes.fromhex("0fb6470bc3"),
    "lua_gettop": bytes.fromhex("488b4728482b472048c1f803c3"),
    "lua_atpanic": bytes.fromhex("488b4710488b90600100004889b060010000"),
}
"""What libluajit-5.1.so.2 of Debian 12 has there."""


@pytest.mark.parametrize(
    ("image", "changed", "version"),
    [
        (b"LuaJIT 2.1.0-beta3\0LuaJIT 2.1.0-beta3 -- Copyright (C)\0", {}, "LuaJIT 2.1"),
        (b"LuaJIT 2.1.1700008891\0", {}, "LuaJIT 2.1"),
        (b"LuaJIT 2.1.0\0", {name: b"\xf3\x0f\x1e\xfa" + code for name, code in DEBIAN_12.items()}, "LuaJIT 2.1"),
        (b"LuaJIT 2.0.5\0", {}, None),
        (b"LuaJIT 2.1.0\0LuaJIT 2.0.5\0", {}, None),
        (b"Lua 5.1\0", {}, None),
        (b"LuaJIT 2.1.0\0", {"lua_status": bytes.fromhex("0fb64707c3")}, None),
        (b"LuaJIT 2.1.0\0", {"lua_gettop": bytes.fromhex("8b47142b4710c1f803c3")}, None),
        (b"LuaJIT 2.1.0\0", {"lua_atpanic": bytes.fromhex("488b4710488b9068010000")}, None),
        (b"LuaJIT 2.1.0\0", {"lua_atpanic": b""}, None),
    ],
    ids=["debian 12", "later", "landing pads", "2.0", "two", "puc", "status of 32 bits", "32 bits", "moved", "no code"],
)
def test_the_layout_of_luajit(image: bytes, changed: dict[str, bytes], version: str | None) -> None:
    assert luajit_version(image, lambda name: {**DEBIAN_12, **changed}[name]) == version
    assert lua_version(image) is None
