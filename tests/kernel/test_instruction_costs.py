"""The costs of probes are measured on the running kernel."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.architecture.instruction import InstructionClass
from tracer.architecture.x86_64.instruction_classes import NOP10, NOPS5
from tracer.kernel import bpf
from tracer.kernel.abilities import optimises_nops
from tracer.kernel.bpf import ProgramType
from tracer.kernel.instruction_costs import known_costs, measure_costs

RETURN_7 = bytes.fromhex("b807000000c3")
CALL = 0xE8
STUB_BYTES = len(NOPS5[0] + NOP10 + RETURN_7)


@pytest.mark.needs("uprobe_multi")
def test_every_class_is_measured() -> None:
    measured = measure_costs()
    # The kernel may refuse the 10-byte nop, and nothing else.
    assert {InstructionClass(name) for name in measured} | {InstructionClass.NOP10} == set(InstructionClass)
    assert all(nanoseconds > 0 for nanoseconds in measured.values())


@pytest.mark.needs("uprobe_multi")
def test_the_answer_is_kept_and_a_damaged_one_replaced(private_folders: Callable[[], Path]) -> None:
    cache = private_folders()
    first = known_costs(cache)
    assert known_costs(cache) == first
    (kept,) = cache.iterdir()
    kept.write_text("{")
    assert set(known_costs(cache)) == set(first)
    assert kept.read_text() != "{"


@pytest.mark.needs("uprobe_multi")
def test_a_probed_nop_of_a_stub_becomes_a_call_where_that_is_said() -> None:
    file = os.memfd_create("stub", os.MFD_CLOEXEC)
    os.write(file, (NOPS5[0] + NOP10 + RETURN_7).ljust(mmap.PAGESIZE, b"\xcc"))
    address = _mapped(file)
    stub = ctypes.CFUNCTYPE(ctypes.c_int)(address)
    before = ctypes.string_at(address, STUB_BYTES)
    link = _probe(file, [0, len(NOPS5[0])]) or _probe(file, [0])
    assert link is not None
    try:
        assert [stub() for _ in range(3)] == [7, 7, 7]
        probed = ctypes.string_at(address, STUB_BYTES)
        # A 10-byte nop is to become an instruction of 5 bytes that spares the red zone, and then the call.
        assert (CALL in (probed[0], probed[10])) is optimises_nops(), probed.hex()
    finally:
        os.close(link)
        os.close(file)
    assert stub() == 7
    assert before != probed


def _mapped(file: int) -> int:
    """Map the file's first page as code; return its address."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    kind = mmap.PROT_READ | mmap.PROT_EXEC
    return int(libc.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), kind, mmap.MAP_PRIVATE, file, ctypes.c_size_t(0)))


def _probe(file: int, places: list[int]) -> int | None:
    """Put an empty program on places of the file, in this process; return the link, None where one is refused."""
    return_zero = bytes([0xB7, *[0] * 7, 0x95, *[0] * 7])
    load = bpf.load_program
    program = load(ProgramType.KPROBE, "empty", return_zero, attach_type=bpf.ATTACH_UPROBE_MULTI)[0]
    path, cookies = f"/proc/self/fd/{file}", [0] * len(places)
    try:
        return bpf.link_uprobes(program, path, places, cookies, os.getpid(), at_return=False)
    except OSError:
        return None
    finally:
        os.close(program)
