"""Location expressions as compilers write them, and bytes that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.dwarf.value_expressions import Base, Unlocated, ValuePlace, frame_base_of, value_of

CFA = frame_base_of(b"\x9c")
RBP = frame_base_of(b"\x56")


def value(expression: str, frame: ValuePlace | None = CFA) -> ValuePlace:
    return value_of(bytes.fromhex(expression), frame, lambda index: 0x1000 * index)


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("55", ValuePlace(Base.REGISTER, 5, (0,))),  # DW_OP_reg5
        ("90 0c", ValuePlace(Base.REGISTER, 12, (0,))),  # DW_OP_regx 12
        ("73 10 9f", ValuePlace(Base.REGISTER, 3, (16,))),  # DW_OP_breg3 16, stack_value
        ("73 78", ValuePlace(Base.REGISTER, 3, (-8, 0))),  # in memory, at rbx - 8
        ("73 08 06 9f", ValuePlace(Base.REGISTER, 3, (8, 0))),  # the pointer at rbx + 8
        ("73 08 06 23 20 9f", ValuePlace(Base.REGISTER, 3, (8, 32))),
        ("91 68", ValuePlace(Base.FRAME, 0, (-24, 0))),  # DW_OP_fbreg -24
        ("30 9f", ValuePlace(Base.CONSTANT, 0, (0,))),  # DW_OP_lit0, stack_value: NULL
        ("03 4010400000000000 9f", ValuePlace(Base.ADDRESS, 0, (0x401040,))),
        ("a1 03 9f", ValuePlace(Base.ADDRESS, 0, (0x3000,))),  # DW_OP_addrx 3
        ("73 00 38 22 9f", ValuePlace(Base.REGISTER, 3, (8,))),  # DW_OP_breg3 0, lit8, plus
        ("73 00 38 1c 9f", ValuePlace(Base.REGISTER, 3, (-8,))),
    ],
)
def test_a_value_has_a_place(expression: str, place: ValuePlace) -> None:
    assert value(expression) == place


def test_a_frame_base_may_be_a_register() -> None:
    assert value("91 68", RBP) == ValuePlace(Base.REGISTER, 6, (-24, 0))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "its parameter was optimised away"),
        ("a3 01 55 9f", "its parameter is known only as it was when the function around it was called"),
        ("f3 01 55 9f", "its parameter is known only as it was when the function around it was called"),
        ("f2 00000000 00", "its parameter points to what the compiler did away with"),
        ("55 93 04 54 93 04", "its parameter is in several pieces"),
        ("61", "its parameter is in a vector register"),
        ("73", "its parameter's place makes no sense"),
        ("12", "its parameter is computed in a way that no probe can follow"),
        ("73 00 74 00 22 9f", "its parameter is computed in a way that no probe can follow"),
    ],
)
def test_what_no_probe_can_read_has_a_reason(expression: str, reason: str) -> None:
    with pytest.raises(Unlocated) as found:
        value(expression)
    assert str(found.value) == reason


@given(st.binary(max_size=24))
def test_any_bytes_give_a_place_or_a_reason(expression: bytes) -> None:
    try:
        place = value_of(expression, CFA, lambda index: index)
    except Unlocated as reason:
        assert str(reason)
    else:
        assert place.offsets
