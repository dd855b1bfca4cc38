"""The programs that hold threads keep nothing on their stack while they do.

Newer kernels (seen with 6.18) give a program with 64 bytes of stack or more one stack per processor. Two threads that
are held on one processor take turns in it, so what one spilled there the other overwrites: a thread that was released
went on waiting, and its hold counted as expired.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tracer.capture.btf import kernel_offsets
from tracer.capture.maps import Limits, Maps
from tracer.capture.programs import FRAMES_PER_PROGRAM, compiled

COPY_FROM_USER_TASK, CALL, EXIT = 191, 0x85, 0x95
LOAD, STORES, JUMPS = 1, (2, 3), (5, 6)
FRAME_POINTER = 10

Instruction = tuple[int, int, int, int]


def instructions(code: bytes) -> list[Instruction]:
    return [struct.unpack_from("<BBhi", code, at) for at in range(0, len(code), 8)]


def touches_stack(instruction: Instruction) -> bool:
    code, registers, _, _ = instruction
    target, source = registers & 15, registers >> 4
    return (code & 7 == LOAD and source == FRAME_POINTER) or (code & 7 in STORES and target == FRAME_POINTER)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    maps = Maps.create(Limits())
    try:
        return compiled(maps, kernel_offsets(), FRAMES_PER_PROGRAM[0], Path(tmp_path_factory.mktemp("cache")))
    finally:
        maps.close()


@pytest.mark.parametrize("name", ["on_hold", "on_mapping", "on_unwinding", "on_unwinding_held"])
def test_the_loop_of_a_hold_is_in_registers(programs: dict[str, bytes], name: str) -> None:
    code = instructions(programs[name])
    [sleep] = [at for at, (op, _, _, imm) in enumerate(code) if (op, imm) == (CALL, COPY_FROM_USER_TASK)]
    back = next(
        at for at, (op, _, offset, _) in enumerate(code)
        if at > sleep and op & 7 in JUMPS and op not in (CALL, EXIT) and offset < 0
    )  # fmt: skip
    first = back + 1 + code[back][2]
    assert first < sleep < back
    assert not [at for at in range(first, back + 1) if touches_stack(code[at])]
    assert not [at for at in range(back, len(code)) if code[at][0] & 7 == LOAD and code[at][1] >> 4 == FRAME_POINTER]
