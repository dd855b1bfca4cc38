"""Programs that the kernel runs on tasks, and whose output is read like a file: nobody is stopped, no signal is sent.

They are instructions of the BPF machine (Documentation/bpf/standardization/instruction-set.rst in Linux' source), run
with the struct bpf_iter__task of one thread after the other.
"""

from __future__ import annotations

import struct

from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType
from tracer.kernel.known_offsets import TASK_ITERATOR, kernel_number

PROBE_READ_KERNEL, SEQ_WRITE, TASK_PT_REGS = 113, 127, 175
"""Helpers of include/uapi/linux/bpf.h; the last is of Linux 5.15."""
MOVE, MOVE_IMMEDIATE, ADD_IMMEDIATE, CALL = 0xBF, 0xB7, 0x07, 0x85
_LOAD, _JUMP_IF_EQUAL, _EXIT = 0x79, 0x15, 0x95
TASK = 7
"""The register that has the task."""
_FRAME = 10


def instruction(operation: int, to: int = 0, source: int = 0, offset: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("<BBhi", operation, source << 4 | to, offset, immediate)


def load_iterator(name: str, place: list[bytes], size: int) -> int:
    """Load a program that writes, for each task, the `size` bytes at the kernel's address that `place` leaves in
    register 3; return its descriptor. Raises OSError where the kernel refuses it."""
    copy = [
        *place, *_room(1, size), instruction(MOVE_IMMEDIATE, 2, immediate=size),
        instruction(CALL, immediate=PROBE_READ_KERNEL),
        instruction(_LOAD, 1, 6), instruction(_LOAD, 1, 1), *_room(2, size),
        instruction(MOVE_IMMEDIATE, 3, immediate=size), instruction(CALL, immediate=SEQ_WRITE),
    ]  # fmt: skip
    code = b"".join([
        instruction(MOVE, 6, 1), instruction(_LOAD, TASK, 6, 8), instruction(_JUMP_IF_EQUAL, TASK, offset=len(copy)),
        *copy, instruction(MOVE_IMMEDIATE, 0), instruction(_EXIT),
    ])  # fmt: skip
    return bpf.load_program(
        ProgramType.TRACING, name, code, attach_type=bpf.TRACE_ITERATOR, traced_function=kernel_number(TASK_ITERATOR)
    )[0]


def _room(register: int, size: int) -> tuple[bytes, bytes]:
    """Have a register point to room on the program's stack."""
    return instruction(MOVE, register, _FRAME), instruction(ADD_IMMEDIATE, register, immediate=-size)
