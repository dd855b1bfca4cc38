"""DWARF expressions of call frames, operator by operator."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cfi.expressions import computed

REGISTERS = {3: 0x7000, 7: 0x7FF0, 16: 0x40102B}
MEMORY = {(0x7008, 8): 0x1122334455667788, (0x7008, 4): 0x55667788}
MINUS_ONE = (1 << 64) - 1


def value(expression: bytes, initial: int | None = None) -> int:
    return computed(expression, REGISTERS.__getitem__, lambda address, size: MEMORY[address, size], initial)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (b"\x30", 0), (b"\x4f", 31),  # lit0, lit31
        (b"\x08\xff", 255), (b"\x09\xff", MINUS_ONE),  # const1u, const1s
        (b"\x0a\xff\xff", 65535), (b"\x0b\xff\xff", MINUS_ONE),
        (b"\x0c\xff\xff\xff\xff", 0xFFFFFFFF), (b"\x0d\xff\xff\xff\xff", MINUS_ONE),
        (b"\x0e" + b"\xff" * 8, MINUS_ONE), (b"\x03" + b"\x10" + bytes(7), 16),  # const8u, addr
        (b"\x10\x80\x01", 128), (b"\x11\x7f", MINUS_ONE),  # constu, consts
        (b"\x73\x08", 0x7008), (b"\x77\x70", 0x7FE0), (b"\x92\x03\x08", 0x7008),  # breg, bregx
        (b"\x73\x08\x06", 0x1122334455667788), (b"\x73\x08\x94\x04", 0x55667788),  # deref, deref_size
        (b"\x35\x33\x12\x22", 6), (b"\x35\x33\x13", 5), (b"\x35\x33\x14", 5), (b"\x35\x33\x15\x01", 5),
        (b"\x35\x33\x16", 5),  # dup plus, drop, over, pick, swap
        (b"\x31\x32\x33\x17\x1c", MINUS_ONE),  # rot: 3 1 2, then minus
        (b"\x31\x32\x33\x17\x13\x1c", 2),
        (b"\x09\xfb\x19", 5), (b"\x35\x1f", MINUS_ONE - 4), (b"\x30\x20", MINUS_ONE),  # abs, neg, not
        (b"\x3f\x33\x1a", 3), (b"\x38\x33\x21", 11), (b"\x3f\x33\x27", 12),  # and, or, xor
        (b"\x35\x33\x1c", 2), (b"\x35\x33\x1e", 15), (b"\x38\x33\x1b", 2), (b"\x38\x33\x1d", 2),
        (b"\x09\xf9\x32\x1b", MINUS_ONE - 2),  # div: -7 / 2 = -3
        (b"\x33\x34\x24", 48), (b"\x3f\x32\x25", 3), (b"\x09\xf8\x31\x26", MINUS_ONE - 3),  # shl, shr, shra
        (b"\x31\x08\x40\x24", 0), (b"\x09\xff\x08\xc8\x25", 0), (b"\x09\xff\x08\xc8\x26", MINUS_ONE),
        (b"\x33\x33\x29", 1), (b"\x33\x34\x2e", 1), (b"\x09\xff\x30\x2d", 1), (b"\x09\xff\x30\x2b", 0),
        (b"\x33\x33\x2a", 1), (b"\x33\x33\x2c", 1),  # eq, ne, lt, gt, ge, le
        (b"\x31\x28\x01\x00\x35\x33", 3), (b"\x37\x30\x28\x01\x00\x35", 5), (b"\x33\x2f\x01\x00\x35", 3),  # bra, skip
        (b"\x33\x96\x23\x10", 19),  # nop, plus_uconst
        (bytes.fromhex("770880003f1a302a332422"), 0x7FF0 + 8 + 8),  # the linker's .plt
    ],
)  # fmt: skip
def test_each_operator(expression: bytes, expected: int) -> None:
    assert value(expression) == expected


def test_the_frame_address_is_on_the_stack_of_a_register_s_expression() -> None:
    assert value(b"\x40\x1c", 0x8000) == 0x7FF0


@pytest.mark.parametrize(
    "expression",
    [b"", b"\x13", b"\x22", b"\xf3\x01\x55", b"\x9c", b"\x08", b"\x31\x30\x1b", b"\x2f\xfd\xff", b"\x2f\x70\x00"],
)  # fmt: skip
def test_what_makes_no_sense_is_said(expression: bytes) -> None:
    with pytest.raises(ValueError):
        value(expression)


@settings(max_examples=500)
@given(st.binary(max_size=40))
def test_any_expression_ends(expression: bytes) -> None:
    try:
        result = computed(expression, lambda number: number, lambda address, size: address & 0xFF, 0)
    except ValueError:
        return
    assert 0 <= result < 1 << 64
