"""The registers of threads that run on, by an iterator over tasks: nobody is stopped, no signal is sent."""

from __future__ import annotations

import os
import struct

import numpy as np
import numpy.typing as npt

from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType
from tracer.kernel.known_offsets import TASK_ITERATOR, function_number

REGISTER_WORDS = 21
"""Of struct pt_regs (arch/x86/include/asm/ptrace.h)."""
_BYTES = 8 * REGISTER_WORDS
_PROBE_READ_KERNEL, _SEQ_WRITE, _TASK_PT_REGS = 113, 127, 175
"""Helpers of include/uapi/linux/bpf.h; the last is of Linux 5.15."""
_MOVE, _MOVE_IMMEDIATE, _ADD_IMMEDIATE, _LOAD, _JUMP_IF_EQUAL, _CALL, _EXIT = 0xBF, 0xB7, 0x07, 0x79, 0x15, 0x85, 0x95
_FRAME = 10


class TaskRegisters:
    """Reads what a thread had in its registers when it last entered the kernel: now, where it waits there; of one that
    runs, when it was last interrupted. Raises OSError where the kernel refuses the program."""

    def __init__(self) -> None:
        self._program = bpf.load_program(
            ProgramType.TRACING, "registers", _code(), attach_type=bpf.TRACE_ITERATOR,
            traced_function=function_number(TASK_ITERATOR),
        )[0]  # fmt: skip

    def close(self) -> None:
        os.close(self._program)

    def of(self, tid: int) -> npt.NDArray[np.uint64] | None:
        """Return the words of its struct pt_regs, None where there is no such thread."""
        try:
            data = bpf.iterate_task(self._program, tid, _BYTES)
        except OSError:
            return None
        return np.frombuffer(data, np.uint64).copy() if len(data) == _BYTES else None


def _instruction(operation: int, to: int = 0, source: int = 0, offset: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("<BBhi", operation, source << 4 | to, offset, immediate)


def _code() -> bytes:
    """Return the program: it writes struct pt_regs of the task of its context (struct bpf_iter__task) to the file."""
    copy = [
        _instruction(_MOVE, 1, 7), _instruction(_CALL, immediate=_TASK_PT_REGS),
        _instruction(_MOVE, 3, 0), *_room(1), _instruction(_MOVE_IMMEDIATE, 2, immediate=_BYTES),
        _instruction(_CALL, immediate=_PROBE_READ_KERNEL),
        _instruction(_LOAD, 1, 6), _instruction(_LOAD, 1, 1), *_room(2),
        _instruction(_MOVE_IMMEDIATE, 3, immediate=_BYTES), _instruction(_CALL, immediate=_SEQ_WRITE),
    ]  # fmt: skip
    return b"".join([
        _instruction(_MOVE, 6, 1), _instruction(_LOAD, 7, 6, 8), _instruction(_JUMP_IF_EQUAL, 7, offset=len(copy)),
        *copy, _instruction(_MOVE_IMMEDIATE, 0), _instruction(_EXIT),
    ])  # fmt: skip


def _room(register: int) -> tuple[bytes, bytes]:
    """Have a register point to room on the program's stack."""
    return _instruction(_MOVE, register, _FRAME), _instruction(_ADD_IMMEDIATE, register, immediate=-_BYTES)
