"""Walks of a dumped stack: hand-made memory, functions with hand-made call frame instructions."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import cast

import pytest
from frame_bytes import EhFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.binaries.open_binaries import OpenBinary
from tracer.cfi.call_frames import Fde, FrameSource, read_programs
from tracer.cfi.evaluator import row_at
from tracer.cfi.fde_index import FrameIndex
from tracer.model.records import FRAME_BINARY_SHIFT, FRAME_EXACT, StackStatus
from tracer.model.snapshot import Stack
from tracer.unwinding.dwarf_unwinder import DwarfUnwinder
from tracer.unwinding.stack_dump import StackDump

SP = 0x7FFC0010
BASE = SP & -4096
BIAS = 0x7F0000000000
BINARY, ANONYMOUS = 5, 0xDFFF
RBX, RBP, R12 = 3, 6, 12
ENTRY, LEAF, OUTER, LAST, INTERRUPTED = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000
"""Link addresses of functions: a leaf that has nothing but its return address, ..."""


@dataclass
class Functions:
    """What describes each function's frame, by link address."""

    programs: list[Fde]

    def find(self, address: int) -> Fde | None:
        return next((p for p in self.programs if p.start <= address < p.end), None)

    row_at = staticmethod(row_at)


class Program:
    """Stands for the program that all functions are in: no entry point of its own."""

    id = BINARY

    class image:
        interpreter, soname, needed, entry = None, "libx.so", (), 0


def function(start: int, instructions: bytes = b"", **options: object) -> Fde:
    frame = EhFrame(0x500000).common(**options).function(start, 0x100, instructions)
    [made] = read_programs(FrameSource(frame.data, 0x500000))
    return made


LAST_FUNCTION = function(LAST, b"\x07\x10")  # its return address is undefined
FUNCTIONS = [
    function(ENTRY),
    function(LEAF),
    function(OUTER, b"\x83\x02\x0d\x03\x0e\x10"),  # rbx at CFA-16, CFA = rbx + 16
    LAST_FUNCTION,
    function(INTERRUPTED, b"\x09\x06\x0c"),  # rbp in r12
]


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def dump_of(memory: bytes, ip: int, start: int, **registers: int) -> StackDump:
    """Return a dump whose memory begins at SP."""
    numbers = {"rbx": RBX, "rbp": RBP, "r12": R12}
    known = {7: SP, **{number: registers.get(name, 0) for name, number in numbers.items()}}
    code = ((BIAS, BIAS + 0x10000), (0xABC0, 0xABD0))
    return StackDump(1, 2, (10, 0), start, ip, known, {}, BASE, bytes(SP - BASE) + memory, code)


def walk(dump: StackDump, functions: list[Fde] | None = None) -> Stack | None:
    index = cast(FrameIndex, Functions(FUNCTIONS if functions is None else functions))
    binary = cast(OpenBinary, Program())

    def find(address: int) -> tuple[OpenBinary, int] | None:
        return (binary, BIAS) if BIAS <= address < BIAS + 0x10000 else None

    walked = DwarfUnwinder(dump, find, lambda _: index, ANONYMOUS).run()
    return None if walked is None else walked.stack


def key(link_address: int, *, exact: bool = False) -> int:
    return BINARY << FRAME_BINARY_SHIFT | (FRAME_EXACT if exact else 0) | link_address


def test_a_frame_in_rbx_and_the_end_of_the_stack() -> None:
    memory = words(BIAS + OUTER + 9, 0, 0, 77, BIAS + LAST + 5)
    # The entered function returns into OUTER, whose rbx was left where its own saved one is.
    stack = walk(dump_of(memory, BIAS + ENTRY, BIAS + OUTER + 9, rbx=SP + 24))
    assert stack == Stack((key(OUTER + 9), key(LAST + 5)), StackStatus.COMPLETE)


def test_a_walk_that_does_not_begin_where_the_other_did_is_none() -> None:
    assert walk(dump_of(words(BIAS + OUTER + 9), BIAS + ENTRY, BIAS + OUTER + 10)) is None


def test_from_a_return_and_from_an_inlined_copy() -> None:
    memory = words(BIAS + LAST + 5)
    at_return = walk(dump_of(memory, BIAS + LEAF + 4, BIAS + LEAF + 4))
    assert at_return == Stack((key(LEAF + 4), key(LAST + 5)))
    inlined = walk(dump_of(memory, BIAS + LEAF + 8, BIAS + LEAF + 2 | FRAME_EXACT))
    assert inlined == Stack((key(LEAF + 2, exact=True), key(LAST + 5)))


def test_the_return_address_behind_a_trampoline() -> None:
    memory = words(BIAS + LEAF + 9, 0xABC0, 0)
    dump = dump_of(memory, BIAS + ENTRY, BIAS + LEAF + 9)
    stack = walk(replace(dump, pending={SP + 8: BIAS + LAST + 5}))
    assert stack == Stack((key(LEAF + 9), key(LAST + 5)), StackStatus.COMPLETE)


def test_code_without_rules_ends_it_even_with_a_frame_pointer() -> None:
    memory = words(0xABC0, 0, 0, BIAS + LAST + 5)
    stack = walk(dump_of(memory, BIAS + ENTRY, 0xABC0, rbp=SP + 16))
    assert stack == Stack((ANONYMOUS << FRAME_BINARY_SHIFT | 0xABC0,), StackStatus.NO_TABLE)


def test_what_is_not_in_the_copy_ends_it() -> None:
    stack = walk(dump_of(words(BIAS + OUTER + 9), BIAS + ENTRY, BIAS + OUTER + 9, rbx=SP + 4096))
    assert stack == Stack((key(OUTER + 9),), StackStatus.FAULT)


def test_memory_below_the_stack_pointer_is_not_read() -> None:
    below = function(OUTER, b"\x0c\x03\x00")  # CFA = rbx
    stack = walk(dump_of(words(BIAS + OUTER + 9), BIAS + ENTRY, BIAS + OUTER + 9, rbx=SP), [FUNCTIONS[0], below])
    assert stack == Stack((key(OUTER + 9),), StackStatus.FAULT)


def test_a_register_that_calls_do_not_preserve_is_lost() -> None:
    clobbered = function(OUTER, b"\x0d\x00")  # CFA = rax + 8
    stack = walk(dump_of(words(BIAS + OUTER + 9), BIAS + ENTRY, BIAS + OUTER + 9), [FUNCTIONS[0], clobbered])
    assert stack == Stack((key(OUTER + 9),), StackStatus.UNSUPPORTED)


def test_a_frame_pointer_kept_in_another_register() -> None:
    by_rbp = function(OUTER, b"\x0c\x06\x10")  # CFA = rbp + 16
    memory = words(BIAS + INTERRUPTED + 9, BIAS + OUTER + 9, 0, 0, 0, BIAS + LAST + 5)
    dump = dump_of(memory, BIAS + ENTRY, BIAS + INTERRUPTED + 9, rbp=1, r12=SP + 32)
    stack = walk(dump, [FUNCTIONS[0], FUNCTIONS[4], by_rbp, LAST_FUNCTION])
    assert stack == Stack((key(INTERRUPTED + 9), key(OUTER + 9), key(LAST + 5)))


def test_a_function_that_does_not_say_where_it_returns_to_is_not_the_end() -> None:
    silent = function(LAST, program=b"\x0c\x07\x08")
    stack = walk(dump_of(words(BIAS + LAST + 5), BIAS + ENTRY, BIAS + LAST + 5), [FUNCTIONS[0], silent])
    assert stack == Stack((key(LAST + 5),), StackStatus.UNSUPPORTED)


@pytest.mark.parametrize("elsewhere", [0x700000, 0])
def test_a_word_that_the_id_does_not_tell_of_is_not_gone_by(elsewhere: int) -> None:
    """Stacks that differ in it have the same id."""
    stack = walk(dump_of(words(BIAS + LEAF + 9, elsewhere), BIAS + ENTRY, BIAS + LEAF + 9))
    assert stack == Stack((key(LEAF + 9),), StackStatus.UNSUPPORTED)
    in_register = walk(dump_of(words(BIAS + OUTER + 9), BIAS + ENTRY, BIAS + OUTER + 9, rbx=elsewhere))
    assert in_register == Stack((key(OUTER + 9),), StackStatus.UNSUPPORTED)


def test_half_a_word_is_not_gone_by() -> None:
    """Its number tells of whole words."""
    halved = function(LEAF, b"\x0f\x04\x77\x00\x94\x04")  # CFA = the 4 bytes at rsp
    stack = walk(dump_of(words(BIAS + LEAF + 9, BIAS), BIAS + ENTRY, BIAS + LEAF + 9), [FUNCTIONS[0], halved])
    assert stack == Stack((key(LEAF + 9),), StackStatus.UNSUPPORTED)


def test_the_places_are_stack_pointers() -> None:
    index = cast(FrameIndex, Functions(FUNCTIONS))
    binary = cast(OpenBinary, Program())
    memory = words(BIAS + OUTER + 9, 0, 0, 77, BIAS + LAST + 5)
    dump = dump_of(memory, BIAS + ENTRY, BIAS + OUTER + 9, rbx=SP + 24)
    walked = DwarfUnwinder(dump, lambda _: (binary, BIAS), lambda _: index, ANONYMOUS).run()
    assert walked is not None and walked.places == (0, 32)  # behind its return address at SP; rbx + 16


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(SP, SP + 400), st.integers(BIAS, BIAS + 0x6000)),
             max_size=50),
    st.lists(st.binary(max_size=12), min_size=1, max_size=4), st.integers(SP, SP + 400), st.integers(0, 2**64 - 1),
)  # fmt: skip
def test_any_walk_ends(memory: list[int], programs: list[bytes], rbx: int, rbp: int) -> None:
    functions = [function(0x1000 * (i + 1), program) for i, program in enumerate(programs)]
    start = memory[0] & (1 << 47) - 1 if memory else 0
    stack = walk(dump_of(words(*memory), BIAS + ENTRY, start, rbx=rbx, rbp=rbp), functions)
    assert stack is None or len(stack.frames) <= 127
