"""Images of Erlang's BeamAsm, made by hand as its source says; and what is none of them."""

from __future__ import annotations

import struct

import pytest

from tracer.jit.beam_image import BeamFunction, read_beam_image

BASE = 0x7F0000001000
Lines = list[tuple[int, str, int]]


def text(said: str) -> bytes:
    return said.encode() + b"\0"


def module(name: str, ranges: list[tuple[int, int, str, Lines]], size: int = 0x400) -> bytes:
    """Return struct debug_info with its name and ranges: each of a start, an end, a name and lines."""
    named = text(name)
    head = struct.pack("<I4xQIIH", 1, BASE, len(ranges), size, len(named)) + named
    data = head.ljust(32 + len(named), b"\0")
    for start, end, function, lines in ranges:
        data += struct.pack("<IIIH", start, end, len(lines), len(text(function))) + text(function) + bytes(2)
        for at, file, line in lines:
            data += struct.pack("<IIH", at, line, len(text(file))) + text(file) + bytes(2)
    return data


LINES: Lines = [(0x20, "lists.erl", 12), (0x48, "lists.erl", 14)]
LISTS = module("lists", [(0, 0x40, "lists:seq/2", []), (0x20, 0x90, "lists:map/2", LINES), (0x90, 0x90, "none", [])])


def test_functions_and_lines() -> None:
    assert read_beam_image(LISTS) == (
        BeamFunction(BASE, BASE + 0x40, "lists:seq/2", ()),
        BeamFunction(BASE + 0x20, BASE + 0x90, "lists:map/2",
                     ((BASE + 0x20, "lists.erl", 12), (BASE + 0x48, "lists.erl", 14))),
    )  # fmt: skip


def test_of_the_emulator_there_is_nothing_to_tell() -> None:
    assert read_beam_image(struct.pack("<I4xi4xQ8x", 0, 1, BASE)) == ()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x7fELF\x02\x01".ljust(64, b"\0"), LISTS[:-1], LISTS + b"\0", bytes(64), b"\xff" * 200,
        module("m", [(0x10, 0x500, "m:f/0", [])]), module("m", [(0x20, 0x10, "m:f/0", [])]),
        LISTS.replace(b"seq/2\0", b"seq/2x"),
    ],
)  # fmt: skip
def test_what_is_something_else(data: bytes) -> None:
    assert read_beam_image(data) is None


@pytest.mark.parametrize("cut", range(0, len(LISTS), 7))
def test_a_piece_of_one_is_none(cut: int) -> None:
    assert read_beam_image(LISTS[:cut]) is None
