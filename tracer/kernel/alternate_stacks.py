"""The alternate signal stacks of a process' threads (sigaltstack(2)), by an iterator over tasks: often the kernel alone
knows where they are."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import numpy as np
import numpy.typing as npt

from tracer.kernel.bpf import iterate_tasks
from tracer.kernel.known_offsets import ALTERNATE_STACK, kernel_number
from tracer.kernel.task_iterators import ADD_IMMEDIATE, MOVE, TASK, instruction, load_iterator

_PAIR = np.dtype([("address", "<u8"), ("size", "<u8")])
"""`sas_ss_sp` and `sas_ss_size` of struct task_struct (include/linux/sched.h), which stand one behind the other."""


def alternate_stacks(pid: int) -> npt.NDArray[np.uint64]:
    """Return where they start; none where the kernel does not tell: before Linux 6.1."""
    program = _program()
    try:
        data = iterate_tasks(program, pid=pid) if program is not None else b""
    except OSError:
        data = b""
    pairs = np.frombuffer(data[: len(data) // _PAIR.itemsize * _PAIR.itemsize], _PAIR)
    return pairs["address"][pairs["size"] > 0].astype(np.uint64)


@cache
def _program() -> int | None:
    """Return its descriptor, for as long as refleak runs: it is asked at each end of a process. None where the kernel
    refuses it."""
    with suppress(OSError):
        offset = kernel_number(ALTERNATE_STACK)
        place = [instruction(MOVE, 3, TASK), instruction(ADD_IMMEDIATE, 3, immediate=offset)]
        return load_iterator("alt_stacks", place, _PAIR.itemsize) if offset else None
    return None
