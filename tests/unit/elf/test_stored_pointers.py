"""Pointers in data, relocated by the loader or as they stand in the file; and where thread-local storage is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.elf.stored_pointers import StorageWord, storage_word, stored_pointer
from tracer.elf.symbol_table import read_symbol_table

SOURCE = """\
static int first(void) { return 1; }
struct { long count; int (*function)(void); } table = { 7, first };
int main(void) { return table.function(); }
"""


@pytest.mark.parametrize("flags", [("-no-pie",), ("-pie", "-fPIE"), ("-shared", "-fPIC"),
                                   ("-pie", "-fPIE", "-fuse-ld=lld", "-Wl,--pack-dyn-relocs=relr")])  # fmt: skip
def test_a_pointer_to_a_local_function(flags: tuple[str, ...], tmp_path: Path) -> None:
    source, built = tmp_path / "table.c", tmp_path / "table"
    source.write_text(SOURCE)
    subprocess.run(["clang" if "-fuse-ld=lld" in flags else "gcc", "-O0", *flags, source, "-o", built], check=True)
    with Image.open(built) as image:
        [table], [first] = (read_symbol_table(image).find(name) for name in ("table", "first"))
        assert stored_pointer(image, table.address + 8) == first.address
        assert stored_pointer(image, table.address) == 7
        assert stored_pointer(image, 1 << 40) is None


THREAD_LOCAL = """\
static __thread long before[3], counter = 7;
long *next(void) { return before[1] ? before : &counter; }
"""
NONE = "long next(void) { return 7; }"


@pytest.mark.parametrize(
    ("text", "model", "size"),
    [(THREAD_LOCAL, "initial-exec", 32), (THREAD_LOCAL, "global-dynamic", None), (NONE, "initial-exec", None)],
)
def test_the_word_that_tells_where_thread_local_storage_is(
    text: str, model: str, size: int | None, tmp_path: Path
) -> None:
    """Run: the loader's word, less the addend, is the offset of the storage from the thread pointer."""
    source, built = tmp_path / "storage.c", tmp_path / "storage.so"
    source.write_text(text)
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", f"-ftls-model={model}", source, "-o", built], check=True)
    with Image.open(built) as image:
        word = storage_word(image)
        assert (word.size if word else None) == size
        if word is not None:
            [next_] = read_symbol_table(image).find("next")
            assert offset_in_storage(built, next_.address, word) == 0  # the initialized one comes first


def offset_in_storage(library: Path, next_: int, word: StorageWord) -> int:
    """Return where in its storage the variable is that `next` returns, asked of a program that loads the library."""
    code = f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
library.next.restype = ctypes.c_void_p
address = ctypes.cast(library.next, ctypes.c_void_p).value - {next_}
offset = ctypes.c_int64.from_address(address + {word.link_address}).value - {word.addend}
libc = ctypes.CDLL(None)
pointer = ctypes.c_uint64()
assert libc.syscall(158, 0x1003, ctypes.byref(pointer)) == 0  # arch_prctl, ARCH_GET_FS
print(library.next() - pointer.value - offset)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout)
