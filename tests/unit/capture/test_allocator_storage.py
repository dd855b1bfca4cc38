"""Where an allocator's thread-local storage is, read from a process that has loaded it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.binaries.open_binaries import Binaries
from tracer.capture.allocator_memory import AllocatorStorage
from tracer.procfs.maps import read_maps
from tracer.scanning.process_memory import ProcessMemory

SOURCE = "static __thread long first = 7, second[12];\nlong *place(void) { return second[0] ? second : &first; }\n"
SIZE = 8 * 13
SAYS = """
import ctypes, sys
place = ctypes.CDLL(sys.argv[1]).place
place.restype = ctypes.c_void_p
pointer = ctypes.c_uint64()
ctypes.CDLL(None).syscall(158, 0x1003, ctypes.byref(pointer))  # arch_prctl, ARCH_GET_FS
print(place() - pointer.value, flush=True)
input()
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("storage")
    (folder / "storage.c").write_text(SOURCE)
    library = folder / "libjemalloc.so.2"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-ftls-model=initial-exec", "-o", str(library), "storage.c"]
    subprocess.run(command, check=True, cwd=folder, timeout=100)
    return library


@pytest.fixture
def process(built: Path) -> Iterator[tuple[int, int]]:
    """A process that has loaded the library, and where the storage begins there, from the thread pointer on."""
    command = [sys.executable, "-c", SAYS, built]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield running.pid, int(running.stdout.readline())
        running.kill()


def found_in(pid: int, word_is: int | None = None) -> list[tuple[int, int]]:
    binaries, memory, entries = Binaries(), ProcessMemory(pid), read_maps(pid)
    for entry in entries:
        if entry.inode and "jemalloc" in entry.path:
            binary = binaries.mapped(entry, [entry.path])
            assert binary is not None
            binary.bias_of(entry.start, entry.end, entry.file_offset)
    try:
        return AllocatorStorage(binaries).find(entries, memory.words if word_is is None else lambda _, __: [word_is])
    finally:
        memory.close()
        binaries.close()


def test_it_is_where_the_process_has_it(process: tuple[int, int]) -> None:
    pid, first = process
    assert found_in(pid) == [(first, SIZE)]


@pytest.mark.parametrize("word", [0, 8, 1 << 20, -8 % (1 << 64)])
def test_a_word_that_the_loader_has_not_written_says_nothing(process: tuple[int, int], word: int) -> None:
    """What is above the thread pointer is libc's: a program's own values are there (pthread_setspecific)."""
    assert found_in(process[0], word) == []


def test_other_libraries_have_none(process: tuple[int, int]) -> None:
    binaries, memory, entries = Binaries(), ProcessMemory(process[0]), read_maps(process[0])
    for entry in entries:
        if entry.inode and entry.path.startswith("/") and "jemalloc" not in entry.path:
            binaries.mapped(entry, [entry.path])
    assert AllocatorStorage(binaries).find(entries, memory.words) == []
    memory.close()
    binaries.close()
