"""Two evaluators of call frame information say the same: the hot loop's rows, and the rows of all registers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from frame_bytes import EhFrame
from hypothesis import given
from hypothesis import strategies as st

from tracer.architecture.current import ARCHITECTURE
from tracer.cfi.call_frames import CallFrames, Fde, FrameSource, decode, read_programs
from tracer.cfi.evaluator import RegisterRow, Where, row_at
from tracer.cfi.frame_source import frame_sources
from tracer.cfi.rows import Saved, State
from tracer.elf.image import Image

START, FRAMES, SIZE = 0x401000, 0x500000, 0x10000
MOST_FUNCTIONS = 2000
BINARIES = [path for path in (
    "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    sys.executable,
) if Path(path).exists()]  # fmt: skip


def place_of(row: RegisterRow, register: int) -> Saved:
    """Return where a register is in the hot loop's words."""
    saved = row.saved.get(register)
    if saved is None:
        return "same"
    if saved.where is Where.UNDEFINED:
        return "undefined"
    return saved.value if saved.where in (Where.AT_OFFSET, Where.AT_EXPRESSION) else "elsewhere"


def state_of(row: RegisterRow) -> State:
    """Return what the hot loop keeps of a row."""
    register, offset = row.cfa if isinstance(row.cfa, tuple) else (row.cfa if row.cfa is not None else -1, 0)
    registers = (ARCHITECTURE.frame_pointer, ARCHITECTURE.return_address, ARCHITECTURE.stack_pointer)
    fp, return_address, sp = (place_of(row, number) for number in registers)
    return State(register, offset, fp, return_address, sp)


def states_of(frames: CallFrames, number: int) -> list[tuple[int, State]]:
    """Return the rows of a function: distance and state."""
    rows, program = frames.rows, int(frames.programs[number])
    places = range(rows.first_rows[program], rows.first_rows[program + 1])
    return [(rows.distances[at], rows.states[rows.indexes[at]][0]) for at in places]


def shown(state: State) -> State:
    """Leave out the offset of a CFA that an expression computes: it is of no meaning."""
    return state._replace(offset=0) if isinstance(state.register, bytes) else state


def has_expression(function: Fde) -> bool:
    return b"\x0f" in function.instructions


def disagreements(frames: CallFrames, functions: list[Fde], sample: range) -> list[object]:
    found: list[object] = []
    for number in sample:
        function = functions[number]
        assert (function.start, function.end) == (frames.starts[number], frames.ends[number])
        if not frames.programs[number]:  # not understood: the one that stops at an address may not come to that
            continue
        for distance, state in states_of(frames, number):
            row = row_at(function, function.start + distance)
            if row is None:  # it refuses what changes register or offset where an expression computes the CFA
                assert isinstance(state.register, bytes) or has_expression(function)
            elif shown(state) != shown(state_of(row)) and function.start + distance < function.end:
                found.append((hex(function.start), distance, state, state_of(row)))
    return found


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: Path(path).name)
def test_on_the_binaries_of_this_machine(path: str) -> None:
    source = frame_sources(Image.open(path))[0]
    frames, functions = decode(source), read_programs(source)
    assert len(frames.starts) == len(functions) > 100
    step = max(1, len(functions) // MOST_FUNCTIONS)
    assert disagreements(frames, functions, range(0, len(functions), step)) == []


OWN = (ARCHITECTURE.frame_pointer, ARCHITECTURE.stack_pointer, ARCHITECTURE.return_address)
REGISTERS = st.sampled_from([*OWN, 3, 12])
SMALL = st.integers(0, 127)
INSTRUCTIONS = st.one_of(
    st.integers(1, 63).map(lambda step: bytes([0x40 | step])),
    st.tuples(REGISTERS, SMALL).map(lambda pair: bytes([0x80 | pair[0], pair[1]])),
    REGISTERS.map(lambda register: bytes([0xC0 | register])),
    st.sampled_from([0x05, 0x09, 0x0C, 0x11, 0x12, 0x14, 0x15, 0x2F]).flatmap(
        lambda operation: st.tuples(REGISTERS, SMALL).map(lambda pair: bytes([operation, *pair]))
    ),
    st.sampled_from([0x06, 0x07, 0x08, 0x0D]).flatmap(
        lambda operation: REGISTERS.map(lambda register: bytes([operation, register]))
    ),
    SMALL.map(lambda offset: bytes([0x0E, offset])),
    SMALL.map(lambda offset: bytes([0x0F, 2, 0x77, offset & 0x3F])),
    REGISTERS.map(lambda register: bytes([0x10, register, 2, 0x76, 0])),
    st.just(b"\x0a"), st.just(b"\x0b"), st.just(b"\0"),
)  # fmt: skip


@given(st.lists(INSTRUCTIONS, max_size=20).map(b"".join))
def test_on_any_program(program: bytes) -> None:
    source = FrameSource(EhFrame(FRAMES).common().function(START, SIZE, program).data, FRAMES)
    frames, functions = decode(source), read_programs(source)
    assert disagreements(frames, functions, range(len(functions))) == []
