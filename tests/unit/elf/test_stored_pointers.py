"""Pointers in data: relocated by the loader, or as they stand in the file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.elf.stored_pointers import stored_pointer
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
