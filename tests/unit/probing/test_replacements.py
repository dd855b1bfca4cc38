"""Whether every block of an allocator in libc's place is seen to be made, by what the other binaries use of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.model.operations import FunctionSpec, Operation, Site, place_at_entry
from tracer.probing.replacements import moves_break, whole_replacements

SOURCES = {
    "libjemalloc.so.2": "#define F(name) void *name(void) { return 0; }\n"
    "F(malloc) F(xallocx) F(mallctl) F(free) void *je_malloc(void) __attribute__((alias(\"malloc\")));",
    "plain": "void *malloc(); void *mallctl(); void use(void) { malloc(); mallctl(); }",
    "aliasing": "void *je_malloc(); void use(void) { je_malloc(); }",
    "growing": "void *xallocx(); void use(void) { xallocx(); }",
    "breaking": "void *sbrk(); void use(void) { sbrk(); }",
    "libc.so.6": "void *brk(); void *sbrk(void) { return brk(); }",
}  # fmt: skip


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenBinary]:
    folder, found = tmp_path_factory.mktemp("replacements"), {}
    for number, (name, text) in enumerate(SOURCES.items(), 1):
        source, path = folder / f"{number}.c", folder / name
        source.write_text(text)
        command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", "-O1", "-o", str(path), str(source)]
        subprocess.run(command, check=True, timeout=100)
        found[name] = _opened(number, path)
    return found


def _opened(number: int, path: Path) -> OpenBinary:
    image = Image.open(str(path))
    symbols, placements = read_symbol_table(image), []
    for name, operation in (("malloc", Operation.ALLOC), ("free", Operation.FREE)):
        placements += [
            (1, place_at_entry(Site(FunctionSpec(name, operation), str(path), 0, symbol.address)))
            for symbol in symbols.find(name)
        ]
    return cast(OpenBinary, SimpleNamespace(
        id=number, path=str(path), image=image, symbols=symbols, names=symbols, placements=placements, is_loader=False,
        interposes=None,
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("user", "whole"), [("plain", True), ("aliasing", True), ("growing", False), ("breaking", True)]
)
def test_all_blocks_are_known_unless_an_unprobed_function_is_used(
    binaries: dict[str, OpenBinary], user: str, whole: bool
) -> None:
    allocator = binaries["libjemalloc.so.2"]
    assert whole_replacements([allocator, binaries[user]]) == ({allocator.id} if whole else set())


def test_libc_and_what_is_not_probed_are_no_replacements(binaries: dict[str, OpenBinary]) -> None:
    allocator = binaries["libjemalloc.so.2"]
    bare = SimpleNamespace(**{**vars(allocator), "placements": []})
    assert whole_replacements([cast(OpenBinary, bare), binaries["plain"], binaries["libc.so.6"]]) == set()


@pytest.mark.parametrize(("user", "moves"), [("plain", False), ("breaking", True)])
def test_who_else_asks_for_memory_by_brk(binaries: dict[str, OpenBinary], user: str, moves: bool) -> None:
    assert moves_break([binaries["libjemalloc.so.2"], binaries["libc.so.6"], binaries[user]]) is moves
