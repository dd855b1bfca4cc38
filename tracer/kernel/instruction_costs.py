"""What a probe costs on this kernel by the instruction under it, measured on a throw-away child.

Which instructions the kernel emulates, rewrites, or single-steps differs between versions and between bare and
virtual machines, so it is measured, once per kernel, and kept in the cache directory.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tracer.files.cache_folder import read_own, write_own
from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType

_CALLS = 300
_ROUNDS = 3
_CODE_NAME = "refleak-instructions"
_SNIPPET_BYTES = 64
_FUNCTION_AT = 32
_SAMPLES: Mapping[str, tuple[bytes, int]] = {
    "nop5": (bytes.fromhex("0f1f440000c3"), 0),
    "nop10": (bytes.fromhex("662e0f1f840000000000c3"), 0),
    "nop": (bytes.fromhex("90c3"), 0),
    "push": (bytes.fromhex("555dc3"), 0),
    "call": (bytes.fromhex("e8000000004883c408c3"), 0),
    "jump": (bytes.fromhex("eb00c3"), 0),
    "branch": (bytes.fromhex("4885c07400c3"), 3),
    "other": (bytes.fromhex("31c0c3"), 0),
}
"""Class of instruction to (a function, offset of the instruction in it)."""
_MAY_BE_REFUSED = frozenset(("nop10",))
"""Its prefix is one that kernels before 7.3 refuse."""
_READY = b"r"
_RETURN_ZERO = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])


def _snippet(function: bytes) -> bytes:
    """Return code that calls `function` as often as its argument says: push, mov, call, dec, jne, pop, ret."""
    loop = bytes.fromhex("534889fb") + b"\xe8" + struct.pack("<i", _FUNCTION_AT - 9) + bytes.fromhex("48ffcb75f65bc3")
    return loop.ljust(_FUNCTION_AT, b"\x90") + function.ljust(_SNIPPET_BYTES - _FUNCTION_AT, b"\x90")


def _serve(code_fd: int, size: int, orders: int, answers: int) -> None:
    """In the child: run the snippet that is asked for, and answer with nanoseconds per call."""
    _memory = mmap.mmap(code_fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    base = _address_of_code()
    os.write(answers, _READY)
    while order := os.read(orders, 1):
        run = ctypes.CFUNCTYPE(None, ctypes.c_long)(base + order[0] * _SNIPPET_BYTES)
        run(_CALLS)
        best = float("inf")
        for _ in range(_ROUNDS):
            begin = time.perf_counter_ns()
            run(_CALLS)
            best = min(best, (time.perf_counter_ns() - begin) / _CALLS)
        os.write(answers, struct.pack("<d", best))


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
    sure = [name for name in _SAMPLES if name not in _MAY_BE_REFUSED]
    try:
        with suppress(OSError):
            return _link(program, code_fd, pid, list(_SAMPLES)), list(_SAMPLES)
        return _link(program, code_fd, pid, sure), sure
    finally:
        os.close(program)


def _link(program: int, code_fd: int, pid: int, names: Sequence[str]) -> int:
    starts = {name: index * _SNIPPET_BYTES + _FUNCTION_AT for index, name in enumerate(_SAMPLES)}
    places = [starts[name] + _SAMPLES[name][1] for name in names]
    return bpf.link_uprobes(program, f"/proc/self/fd/{code_fd}", places, [0] * len(places), pid, at_return=False)


def measure_costs() -> dict[str, float]:
    """Return nanoseconds per hit by class of instruction (tracer.sites.costs).

    Without the classes that the kernel refuses to probe; empty where it cannot be measured.
    """
    code_fd = os.memfd_create(_CODE_NAME, os.MFD_CLOEXEC)
    code = b"".join(_snippet(function) for function, _ in _SAMPLES.values())
    os.write(code_fd, code.ljust(mmap.PAGESIZE, b"\xcc"))
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
            os.write(to_child, bytes([list(_SAMPLES).index(name)]))
            costs[name] = float(struct.unpack("<d", os.read(from_child, 8))[0])
    finally:
        os.close(link)
    return costs


def known_costs(directory: Path) -> dict[str, float]:
    """Return the measured costs for the running kernel, from the cache or measured now."""
    system = os.uname()
    asked = f"{system.release} {system.version} {system.machine} {' '.join(_SAMPLES)}"
    name = hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()
    path = directory / f"instruction-costs-{name}.json"
    with suppress(OSError, ValueError, AttributeError):
        cached = json.loads(read_own(path))
        is_whole = set(_SAMPLES) - _MAY_BE_REFUSED <= set(cached) <= set(_SAMPLES)
        if is_whole and all(isinstance(value, float) for value in cached.values()):
            return dict(cached)
    costs = measure_costs()
    if costs:
        with suppress(OSError):
            write_own(path, json.dumps(costs).encode())
    return costs
