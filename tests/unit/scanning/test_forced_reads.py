"""Memory without rights, of a child of the test: read as whoever the kernel permits it to."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracer.scanning import forced_reads as module
from tracer.scanning.forced_reads import ForcedReads

WORD, PAGE = 0x1122334455667788, 4096


@pytest.fixture(scope="module")
def child() -> Iterator[tuple[int, int]]:
    """Yield a process, and the address of a word in a page that it may not read."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    address = libc.mmap(None, PAGE, 3, 0x22, -1, 0)
    ctypes.c_uint64.from_address(address).value = WORD
    libc.mprotect(address, PAGE, 0)
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(tell, b"1")
        signal.pause()
        os._exit(0)
    os.read(ready, 1)
    yield pid, address
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def read(pid: int, address: int) -> tuple[int, int, bool]:
    """Return the word, how many bytes were read, and whether that was refused."""
    reads, buffer = ForcedReads(pid), np.zeros(1, np.uint64)
    reads.ranges = [(address, address + 8)]
    done = reads.read(address, buffer)
    reads.close()
    return int(buffer[0]), done, reads.refused


def tracer_of(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith("TracerPid:")).split()[1]


def test_what_the_kernel_reads_for_everybody(child: tuple[int, int]) -> None:
    assert read(*child) == (WORD, 8, False)


def test_what_it_reads_only_for_who_traces_it(child: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    pid, address = child

    def only_as_tracer(*arguments: object) -> int:
        if tracer_of(pid) != str(threading.get_native_id()):
            raise OSError
        return plain(*arguments)

    plain = os.preadv
    monkeypatch.setattr(module.os, "preadv", only_as_tracer)
    for _ in range(300):  # each by a thread of its own: the next one is refused while the last one still traces
        assert read(pid, address) == (WORD, 8, False)
        assert tracer_of(pid) == "0"


def test_where_nothing_is(child: tuple[int, int]) -> None:
    assert read(child[0], PAGE) == (0, 0, False)


def test_what_nobody_may_read(child: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(module.os, "preadv", refuse)
    monkeypatch.setattr(module, "seize", lambda _: False)
    assert read(*child) == (0, 0, True)
