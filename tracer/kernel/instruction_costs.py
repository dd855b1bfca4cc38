"""Instruction costs of a probe on this kernel, measured on a throw-away child.

Which instructions the kernel emulates, rewrites, or single-steps differs between versions and between bare and
virtual machines, so it is measured, once per kernel, and kept in the cache directory.

Where it rewrites one, a forked child has the call too. Linux 6.18 does not give it the page that is called (VM_DONTCOPY
in arch/x86/kernel/uprobes.c), so that it crashes there unless it gets the probe of its own in time: that is tried too.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tracer.architecture.current import ARCHITECTURE
from tracer.files.cache_folder import read_own, write_own
from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType

_TIMED = ARCHITECTURE.timed_code
_CALLS = 300
_ROUNDS = 3
_CODE_NAME = "refleak-instructions"
_READY = b"r"
_IN_A_CHILD = 0x80
"""Added to an order: run the snippet in a forked child, which has no probe of its own, and answer whether it lived."""
_SIGSEGV, _SIGILL = 11, 4
NEVER = float("inf")
"""The cost of what must not be probed."""
_RETURN_ZERO = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])


def _serve(code_fd: int, size: int, orders: int, answers: int) -> None:
    """In the child: run the snippet that is asked for, and answer with nanoseconds per call."""
    _memory = mmap.mmap(code_fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    base = _address_of_code()
    os.write(answers, _READY)
    while order := os.read(orders, 1):
        number = order[0] & ~_IN_A_CHILD
        run = ctypes.CFUNCTYPE(None, ctypes.c_long)(base + number * _TIMED.snippet_bytes)
        if order[0] & _IN_A_CHILD:
            os.write(answers, struct.pack("<d", _lives_in_a_child(run)))
            continue
        run(_CALLS)
        best = float("inf")
        for _ in range(_ROUNDS):
            begin = time.perf_counter_ns()
            run(_CALLS)
            best = min(best, (time.perf_counter_ns() - begin) / _CALLS)
        os.write(answers, struct.pack("<d", best))


def _lives_in_a_child(run: Callable[[int], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        libc = ctypes.CDLL(None)
        for number in (_SIGSEGV, _SIGILL):  # an end that nobody writes into a log
            libc.signal(number, libc._exit)
        run(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def _address_of_code() -> int:
    """Return where the code was mapped; a read-only mapping gives ctypes no address."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(int(line.split("-")[0], 16) for line in lines if _CODE_NAME in line and "r-xp" in line)


def _attach(code_fd: int, pid: int) -> tuple[int, list[str]]:
    """Put an empty program on the instruction of every sample that the kernel takes, in the child only.

    Return the link and the samples' names. The child must have mapped the code: what the kernel refuses in code that
    is mapped later, it passes over without a word.
    """
    program = bpf.load_program(
        ProgramType.KPROBE, "cost", _RETURN_ZERO, attach_type=bpf.ATTACH_UPROBE_MULTI
    )[0]
    sure = [name for name in _TIMED.samples if name not in _TIMED.may_be_refused]
    try:
        with suppress(OSError):
            return _link(program, code_fd, pid, list(_TIMED.samples)), list(_TIMED.samples)
        return _link(program, code_fd, pid, sure), sure
    finally:
        os.close(program)


def _link(program: int, code_fd: int, pid: int, names: Sequence[str]) -> int:
    starts = {name: index * _TIMED.snippet_bytes + _TIMED.function_at for index, name in enumerate(_TIMED.samples)}
    places = [starts[name] + _TIMED.samples[name][1] for name in names]
    return bpf.link_uprobes(program, f"/proc/self/fd/{code_fd}", places, [0] * len(places), pid, at_return=False)


def measure_costs() -> dict[str, float]:
    """Return nanoseconds per hit by class of instruction (InstructionClass), NEVER where children would crash.

    Without the classes that the kernel refuses to probe; empty where it cannot be measured.
    """
    code_fd = os.memfd_create(_CODE_NAME, os.MFD_CLOEXEC)
    code = b"".join(_TIMED.snippet(function) for function, _ in _TIMED.samples.values())
    os.write(code_fd, code.ljust(mmap.PAGESIZE, _TIMED.trap))
    orders, to_child = os.pipe()
    from_child, answers = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.close(to_child)
            _serve(code_fd, mmap.PAGESIZE, orders, answers)
        os._exit(0)
    os.close(orders)
    os.close(answers)
    try:
        return _ask(code_fd, pid, to_child, from_child)
    except (OSError, struct.error):
        return {}
    finally:
        for fd in (to_child, from_child, code_fd):
            os.close(fd)
        os.waitpid(pid, 0)


def _ask(code_fd: int, pid: int, to_child: int, from_child: int) -> dict[str, float]:
    if os.read(from_child, len(_READY)) != _READY:
        return {}
    link, names = _attach(code_fd, pid)
    costs = {}
    try:
        for name in names:
            os.write(to_child, bytes([list(_TIMED.samples).index(name)]))
            costs[name] = float(struct.unpack("<d", os.read(from_child, 8))[0])
            if name in _TIMED.may_be_rewritten:
                os.write(to_child, bytes([_IN_A_CHILD | list(_TIMED.samples).index(name)]))
                if not struct.unpack("<d", os.read(from_child, 8))[0]:
                    costs[name] = NEVER
    finally:
        os.close(link)
    return costs


def known_costs(directory: Path) -> dict[str, float]:
    """Return the measured costs for the running kernel, from the cache or measured now."""
    system = os.uname()
    asked = f"{system.release} {system.version} {system.machine} {' '.join(_TIMED.samples)} children"
    name = hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()
    path = directory / f"instruction-costs-{name}.json"
    with suppress(OSError, ValueError, AttributeError):
        cached = json.loads(read_own(path))
        is_whole = set(_TIMED.samples) - set(_TIMED.may_be_refused) <= set(cached) <= set(_TIMED.samples)
        if is_whole and all(isinstance(value, float) for value in cached.values()):
            return dict(cached)
    costs = measure_costs()
    if costs:
        with suppress(OSError):
            write_own(path, json.dumps(costs).encode())
    return costs
