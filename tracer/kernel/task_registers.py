"""The registers of threads that run on, by an iterator over tasks."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from tracer.kernel.bpf import iterate_tasks
from tracer.kernel.task_iterators import CALL, MOVE, TASK, TASK_PT_REGS, instruction, load_iterator

REGISTER_WORDS = 21
"""Of struct pt_regs (arch/x86/include/asm/ptrace.h)."""
_BYTES = 8 * REGISTER_WORDS


class TaskRegisters:
    """Reads what a thread had in its registers when it last entered the kernel: now, where it waits there; of one that
    runs, when it was last interrupted. Raises OSError where the kernel refuses the program."""

    def __init__(self) -> None:
        place = [instruction(MOVE, 1, TASK), instruction(CALL, immediate=TASK_PT_REGS), instruction(MOVE, 3, 0)]
        self._program = load_iterator("registers", place, _BYTES)

    def close(self) -> None:
        os.close(self._program)

    def of(self, tid: int) -> npt.NDArray[np.uint64] | None:
        """Return the words of its struct pt_regs, None where there is no such thread."""
        try:
            data = iterate_tasks(self._program, tid=tid)
        except OSError:
            return None
        return np.frombuffer(data, np.uint64).copy() if len(data) == _BYTES else None
