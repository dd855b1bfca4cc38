"""The threads of a process stand still while its memory is read: ptrace(2) by PTRACE_SEIZE, which sends no signal.

Whatever becomes of refleak, the kernel lets go of them: a tracer that ends is detached.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer.architecture.current import ARCHITECTURE
from tracer.model.distinct_values import distinct
from tracer.procfs.process import is_running, thread_ids
from tracer.reachability.edges import ADDRESS_BITS

_SEIZE, _INTERRUPT, _DETACH, _GETREGS, _GETREGSET = 0x4206, 0x4207, 17, 12, 0x4204
_EVENT_STOP = 128
_WALL = 0x40000000
REGISTERS = 27
"""Words of struct user_regs_struct (sys/user.h)."""
_STACK_POINTER_WORD = ARCHITECTURE.register_words[ARCHITECTURE.stack_pointer]
_VECTORS, _VECTOR_BYTES = ARCHITECTURE.vector_registers
LEAST_POINTER = np.uint64(1 << 16)
"""The kernel lets nothing be mapped below (vm.mmap_min_addr): what is less is a number."""
_PATIENCE_SECONDS = 0.5
_POLL_SECONDS = 0.0002

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

Words = npt.NDArray[np.uint64]


class NotStopped(Exception):
    """A thread could not be stopped; the text says why, as a clause."""


def stack_pointer(registers: Words) -> int:
    """Return the stack pointer of struct user_regs_struct, or of struct pt_regs, which begins in the same way."""
    return int(registers[_STACK_POINTER_WORD])


def _no_service() -> None:
    pass


@contextmanager
def stopped_threads(
    pid: int, but: int, left: set[int], serve: Callable[[], None] = _no_service
) -> Iterator[dict[int, Words]]:
    """Stop all threads of a process but one, which is held; give the registers of each: struct user_regs_struct, and
    behind it what of the vector registers may be pointers. Raises NotStopped.

    Those that cannot be let go of at the end are added to `left`: they did not stop in time, or died. `serve` is called
    while a thread is waited for: one that is held in the kernel for this process stops only once it is answered.
    """
    stopped: dict[int, int] = {}
    try:
        while new := [tid for tid in thread_ids(pid) if tid != but and tid not in stopped]:
            for tid in new:
                if tid in left or _request(_SEIZE, tid):
                    left.discard(tid)
                    stopped[tid] = 0
                    _request(_INTERRUPT, tid)
                elif is_running(pid, tid):
                    raise NotStopped("another process traces it")
            for tid in new:
                if tid in stopped:
                    stopped[tid] = _wait(pid, tid, serve)
            if not any(tid in stopped for tid in new):
                break
        yield {tid: registers for tid in stopped if (registers := _registers(tid)) is not None}
    finally:
        for tid, signal in stopped.items():
            if not _request(_DETACH, tid, signal):
                left.add(tid)


def let_go(left: set[int]) -> None:
    """Let go of those threads that have stopped or died since; a dead one is in its parent's way until then."""
    for tid in tuple(left):
        try:
            status = _status(tid)
        except ChildProcessError:
            left.discard(tid)
            continue
        if status is None:
            continue
        if not os.WIFSTOPPED(status) or _request(_DETACH, tid, _due_signal(status)):
            left.discard(tid)


def seize(tid: int) -> bool:
    """Begin to trace a thread, which goes on; tell whether it could be. Who calls it and ends lets go of it."""
    return _request(_SEIZE, tid)


def _request(request: int, tid: int, data: int = 0) -> bool:
    return bool(_libc.ptrace(request, tid, None, data) == 0)


def _wait(pid: int, tid: int, serve: Callable[[], None]) -> int:
    """Wait until a thread stands; return the signal that it was about to get, which it is due when it goes on."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        is_late = time.monotonic() >= deadline  # what took so long may have been to serve others
        try:
            status = _status(tid)
        except ChildProcessError:
            return 0
        if status is not None and os.WIFSTOPPED(status):
            return _due_signal(status)
        if status is not None or not is_running(pid, tid):
            return 0
        if is_late:
            raise NotStopped("a thread of it did not stop")
        serve()
        time.sleep(_POLL_SECONDS)


def _status(tid: int) -> int | None:
    """Return how a thread stopped or ended, in the words of wait(2), None where it runs. Raises ChildProcessError.

    The end of a child of our own is left for who launched it to see.
    """
    seen = os.waitid(os.P_PID, tid, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT | _WALL)
    if seen is None:
        return None
    if seen.si_code != os.CLD_TRAPPED and _is_child(tid):
        return 0
    return os.waitpid(tid, os.WNOHANG | _WALL)[1]


def _is_child(tid: int) -> bool:
    """Tell whether this is the first thread of a child of this process, alive or dead."""
    try:
        lines = Path(f"/proc/{tid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return {f"Tgid:\t{tid}", f"PPid:\t{os.getpid()}"} <= set(lines)


def _due_signal(status: int) -> int:
    return 0 if status >> 16 == _EVENT_STOP else os.WSTOPSIG(status)


def _registers(tid: int) -> Words | None:
    words = np.zeros(REGISTERS, np.uint64)
    if _libc.ptrace(_GETREGS, tid, None, words.ctypes.data) != 0:
        return None
    return words if _is_in_system_call(words) else np.append(words, _vector_words(tid))


def _is_in_system_call(registers: Words) -> bool:
    """Whether vectors hold nothing: the functions of libc that make system calls need not preserve any."""
    return int(registers[ARCHITECTURE.system_call_word]) >> 63 == 0


def _vector_words(tid: int) -> Words:
    """Return what of the vector registers may be pointers. While memory is moved one of them may have the only one:
    memmove reads all that is short before it writes."""
    state = np.zeros(_VECTOR_BYTES // 8, np.uint64)
    into = np.array([state.ctypes.data, state.nbytes], np.uint64)  # struct iovec
    if _libc.ptrace(_GETREGSET, tid, _VECTORS, into.ctypes.data) != 0:
        return np.zeros(0, np.uint64)
    found = state[: int(into[1]) // 8]
    return distinct(found[found & ADDRESS_BITS >= LEAST_POINTER])
