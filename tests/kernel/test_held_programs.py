"""The programs that hold threads read nothing from their stack after they began to.

Newer kernels (seen with 6.18) give a program with 64 bytes of stack or more one stack per processor. Two threads that
are held on one processor take turns in it, so what one spilled there the other overwrites: a thread that was released
went on waiting, and its hold counted as expired.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tracer.kernel.btf import kernel_offsets
from tracer.kernel.linking import Linked
from tracer.kernel.maps import Limits, Maps
from tracer.kernel.programs import compiled

COPY_FROM_USER, COPY_FROM_USER_TASK, LOOP, CALL = 148, 191, 181, 0x85
LOAD, STORES, ARITHMETIC = 1, (2, 3), (4, 7)
FLAGS, FRAME_POINTER = 4, 10

HOLDING = ["on_hold", "on_mapping", "on_unwinding_held"]
Instruction = tuple[int, int, int, int]


def functions(program: Linked) -> dict[str, list[Instruction]]:
    code = list(struct.iter_unpack("<BBhi", program.code))
    starts = [start for _, start in program.functions]
    ends = [*starts[1:], len(code)]
    return {name: code[start:end] for (name, start), end in zip(program.functions, ends, strict=True)}


def loads_from_stack(code: list[Instruction]) -> list[Instruction]:
    return [each for each in code if each[0] & 7 == LOAD and each[1] >> 4 == FRAME_POINTER]


def calls(code: list[Instruction], helper: int) -> list[int]:
    return [at for at, (op, source, _, imm) in enumerate(code) if (op, source, imm) == (CALL, 0, helper)]


@pytest.fixture(scope="module", params=[0, 1], ids=["initial-namespace", "in-a-container"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Linked]:
    values = {**kernel_offsets(), "NAMESPACE_LEVEL": request.param}
    maps = Maps.create(Limits())
    try:
        return dict(compiled(maps, values, Path(tmp_path_factory.mktemp("cache"))))
    finally:
        maps.close()


@pytest.mark.parametrize("name", HOLDING)
def test_nothing_is_read_from_the_stack_once_a_thread_was_held(programs: dict[str, Linked], name: str) -> None:
    parts = functions(programs[name])
    [sleep] = calls(parts["turn_hold"], COPY_FROM_USER_TASK)
    assert not loads_from_stack(parts["turn_hold"][sleep:])
    assert not loads_from_stack(parts[name][calls(parts[name], LOOP)[-1] :])


def test_a_hold_uses_too_little_stack_to_get_one_per_processor(programs: dict[str, Linked]) -> None:
    """On kernels that preempt, another thread could write over it anywhere. They round up to 16 bytes, below 64."""
    code = functions(programs["on_hold"])["on_hold"]
    assert min(at for op, registers, at, _ in code if op & 7 in STORES and registers & 15 == FRAME_POINTER) >= -48


def test_nothing_that_was_on_the_stack_before_a_copy_is_used_after_it(programs: dict[str, Linked]) -> None:
    """A copy may sleep, and another thread's program write over what was there."""
    code = functions(programs["on_hold"])["on_hold"]
    for copy in calls(code, COPY_FROM_USER):
        written: set[int] = set()
        for op, registers, offset, _ in code[copy:]:
            if op & 7 in STORES and registers & 15 == FRAME_POINTER:
                written.add(offset)
            elif op & 7 == LOAD and registers >> 4 == FRAME_POINTER:
                assert offset in written


@pytest.mark.parametrize("name", HOLDING)
def test_the_loop_of_a_hold_does_not_become_part_of_the_program(programs: dict[str, Linked], name: str) -> None:
    """The verifier would have it save registers on the stack: where it knows that the flags are 0."""
    code = functions(programs[name])[name]
    loop = calls(code, LOOP)[-1]
    writes = [op for op, registers, _, _ in code[:loop] if registers & 15 == FLAGS and op & 7 in (LOAD, *ARITHMETIC)]
    assert writes[-1] & 7 == LOAD
