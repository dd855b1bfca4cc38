"""Which interpreters are known, and what is said of the others."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.interpreters.lua.layout import LAYOUTS, VERSIONS, lua_version, luajit_version
from tracer.interpreters.python.layout import python_layout, version_text
from tracer.model import records

V311, V312 = 0x030B02F0, 0x030C01F0
PUBLISHED = {
    0x030D00F0: (
        283320, 608, 632,
        194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760,
        304, 0, 8, 16, 72, 152, 160, 232, 32,
        80, 8, 0, 56, 72, 70,
        208, 112, 120, 128, 136, 68, 52, 96, 104, 200,
        16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24, 16, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32,
        64, 32, 16, 40,
    ),
    0x030E0AF0: (
        316616, 784, 808,
        225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0, 7800, 7792, 7992, 0,
        832, 0, 8, 16, 72, 152, 160, 232, 32,
        88, 8, 0, 56, 80, 74, 64, 0,
        216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0,
        16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32,
        64, 32, 16, 40,
    ),
    0x030F02F0: (
        346568, 912, 936,
        226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0, 7752, 7744, 7944, 0,
        888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136, 288, 0,
        88, 8, 0, 56, 80, 74, 64, 0,
        216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0,
        16, 8, 424, 24, 88, 168, 32, 288, 944, 888, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16,
        32, 16, 24, 40, 16, 32,
        64, 32, 16, 40, 56,
    ),
}  # fmt: skip
"""What _PyRuntime has after the version and the free-threaded flag, up to the last field that refleak reads: in
CPython 3.13.0 as pyenv builds it, in 3.14.10 and 3.15.2 of Debian. One row of each struct up to code objects."""
V313, V314, V315 = PUBLISHED
AS_PUBLISHED = [(V313, 632, 7264, 7344, 152, 70, 200), (V314, 808, 7272, 7344, 152, 74, 208),
                (V315, 936, 7264, 7336, 176, 74, 208)]  # fmt: skip
FRAME_BYTES = {V313: 80, V314: 88, V315: 88}


def runtime(
    version: int = V313, *, like: int | None = None, cookie: bytes = b"xdebugpy", free_threaded: int = 0
) -> bytes:
    """Return the head of a _PyRuntime; `like`: the version whose table it has."""
    numbers = PUBLISHED[like or version]
    return struct.pack("<8sQQ", cookie, version, free_threaded) + struct.pack(f"<{len(numbers)}Q", *numbers)


@pytest.mark.parametrize(
    ("version", "interpreters", "next_interpreter", "threads", "thread_id", "owner", "first_instruction"), AS_PUBLISHED
)
def test_what_is_published(
    version: int, interpreters: int, next_interpreter: int, threads: int, thread_id: int, owner: int,
    first_instruction: int,
) -> None:  # fmt: skip
    assert python_layout(version, runtime(version), ()) == {
        "interpreters": interpreters, "next_interpreter": next_interpreter, "threads": threads, "next_thread": 8,
        "thread_id": thread_id, "current": 72, "c_frame": 0, "c_frame_current": 0, "c_frame_previous": 0, "code": 0,
        "previous": 8, "instruction": 56, "mark": owner, "mark_value": 3, "mark_is_frame": 0,
        "first_instruction": first_instruction, "first_line": 68, "file": 112, "name": 128, "line_table": 136,
        "by_content": 0, "ascii_text": 40, "wide_text": 56,
    }  # fmt: skip


@pytest.mark.parametrize("version", PUBLISHED)
@pytest.mark.parametrize("like", PUBLISHED)
def test_the_table_of_another_version_is_not_taken_for_this_one_s(version: int, like: int) -> None:
    """As a pre-release may have it: its fields are elsewhere."""
    layout = python_layout(version, runtime(version, like=like), ())
    assert isinstance(layout, str) == (version != like)


@pytest.mark.parametrize("version", PUBLISHED)
def test_a_table_that_breaks_off(version: int) -> None:
    whole = runtime(version)
    for size in range(len(whole)):
        assert isinstance(python_layout(version, whole[:size], ()), str)


@pytest.mark.parametrize("version", PUBLISHED)
def test_other_structs_than_those_known(version: int) -> None:
    frame = {V313: 25, V314: 28, V315: 36}[version]
    numbers = list(PUBLISHED[version])
    assert numbers[frame : frame + 2] == [FRAME_BYTES[version], 8]
    numbers[frame] += 8
    head = struct.pack("<8sQQ", b"xdebugpy", version, 0) + struct.pack(f"<{len(numbers)}Q", *numbers)
    assert python_layout(version, head, ()) == f"CPython {version_text(version)} has frames that refleak does not know"


@pytest.mark.parametrize("version", [V311, V312])
def test_older_ones_are_known_by_their_version(version: int) -> None:
    layout = python_layout(version, b"", ())
    assert not isinstance(layout, str)
    assert set(layout) | {"runtime", "code_type", "ends_seen"} == set(records.PYTHON.names or ())


@pytest.mark.parametrize(
    ("version", "head", "symbols", "why"),
    [
        (0x030A0DF0, b"", (), "CPython 3.10.13 is older than 3.11"),
        (0x031000F0, runtime(0x031000F0, like=V315), (), "CPython 3.16.0 is newer than refleak"),
        (V311, b"", ("_Py_RefTotal",), "CPython 3.11.2 is a debug build"),
        (V313, b"", (), "CPython 3.13.0 does not say where its frames are"),
        (V313, runtime(cookie=b"xdebugpx"), (), "CPython 3.13.0 does not say where its frames are"),
        (V313, runtime(0x030D01F0, like=V313), (), "CPython 3.13.0 says that it is 3.13.1"),
        (V313, runtime(free_threaded=1), (), "CPython 3.13.0 is a free-threaded build"),
    ],
)
def test_what_is_not_walked_and_why(version: int, head: bytes, symbols: tuple[str, ...], why: str) -> None:
    assert python_layout(version, head, symbols) == why


@given(st.sampled_from(list(PUBLISHED)), st.binary(min_size=0, max_size=1000))
def test_any_bytes_after_the_cookie(version: int, tail: bytes) -> None:
    layout = python_layout(version, struct.pack("<8sQQ", b"xdebugpy", version, 0) + tail, ())
    assert isinstance(layout, str) or all(0 <= offset < 1 << 16 for offset in layout.values())


@given(st.data())
def test_any_field_changed(data: st.DataObject) -> None:
    """Whatever the table says, what is taken from it fits the kernel side's fields and the frame that it reads."""
    version = data.draw(st.sampled_from(list(PUBLISHED)))
    numbers = list(PUBLISHED[version])
    numbers[data.draw(st.integers(0, len(numbers) - 1))] = data.draw(st.integers(0, (1 << 64) - 1))
    head = struct.pack("<8sQQ", b"xdebugpy", version, 0) + struct.pack(f"<{len(numbers)}Q", *numbers)
    layout = python_layout(version, head, ())
    if not isinstance(layout, str):
        assert max(layout.values()) < 1 << 16
        assert max(layout[name] for name in ("code", "previous", "instruction", "mark")) < 80
        assert all(layout[name] % 8 == 0 for name in ("code", "previous", "instruction"))


def test_version_text() -> None:
    assert version_text(V311) == "3.11.2"


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (b"\0$Lua: Lua 5.1.5 Copyright (C)\0", "Lua 5.1"),
        (b"..$LuaVersion: Lua 5.4.4  Copyright", "Lua 5.4"),
        (b"$LuaVersion: Lua 5.5.1  Copyright", "Lua 5.5"),
        (b"$LuaVersion: Lua 5.6.0  Copyright", None),
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
