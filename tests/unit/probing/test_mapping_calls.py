"""Where libc's system calls on mappings are found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tracer.architecture.x86_64.system_calls import NUMBERS
from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.image import Image
from tracer.probing.mapping_calls import NAMES, mapping_calls

LIBC, MUSL = Path("/lib/x86_64-linux-gnu/libc.so.6"), Path("/lib/ld-musl-x86_64.so.1")
JUMPS = range(0x70, 0x80)


def calls_of(path: Path) -> tuple[Image, list[tuple[int, int]]]:
    if not path.exists():
        pytest.skip(f"needs {path}")
    image = Image.open(path)
    return image, mapping_calls(OpenBinary(1, str(path), -1, image))


def test_all_calls_of_glibc_are_found_at_a_jump() -> None:
    image, calls = calls_of(LIBC)
    assert sorted(number for _, number in calls) == sorted(NUMBERS[name] for name in NAMES)
    assert all(image.data[offset] in JUMPS for offset, _ in calls)


def test_the_calls_of_musl_are_found_behind_the_system_call() -> None:
    image, calls = calls_of(MUSL)
    assert sorted(number for _, number in calls) == [9, 10, 11, 25]
    assert all(bytes(image.data[offset - 2 : offset]) == b"\x0f\x05" for offset, _ in calls)


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_library_that_has_none(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    text = "int munmap(void *p, unsigned long n) { return p && n ? 11 : 9; }"
    subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=text, text=True, check=True)
    assert calls_of(library)[1] == []
