"""Allocators under names of their own: which functions are theirs, and whether all of their blocks are known."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from built_program import build

from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.model.operations import FunctionSpec, Operation, Site, place_at_entry
from tracer.probing.embedded_allocators import has_embedded, is_embedded_whole
from tracer.specs.allocators import embedded

JEMALLOC = ("je_malloc", "je_calloc", "je_free", "je_mallocx", "je_sdallocx", "je_xallocx")


def found_in(*names: str) -> set[str]:
    spec = embedded(lambda pattern: [name for name in names if fnmatchcase(name, pattern)])
    return {function.function for function in spec.functions} if spec is not None else set()


def test_jemalloc_under_any_prefix() -> None:
    assert {"je_malloc", "je_realloc", "je_posix_memalign", "je_rallocx", "je_sdallocx"} <= found_in(*JEMALLOC)
    renamed = [name.replace("je_", "_rjem_") for name in JEMALLOC]
    assert {"_rjem_malloc", "_rjem_free", "_rjem_mallocx"} <= found_in(*renamed)
    operators = {name for name in found_in(*renamed) if name.startswith(("_Zn", "_Zd"))}
    assert {"_Znwm", "_ZdlPvm"} <= operators
    assert all(name.startswith("_rjem_") for name in found_in(*renamed) - operators)


@pytest.mark.parametrize("names", [
    (), ("malloc", "free", "mallocx", "sdallocx"), ("my_mallocx", "my_malloc"), ("je_malloc", "je_free"),
    ("mi_malloc",),
])  # fmt: skip
def test_what_is_no_allocator_of_its_own(names: tuple[str, ...]) -> None:
    """jemalloc's own library has no prefix: what it exports is known by its name."""
    assert found_in(*names) == set()


def test_mimalloc() -> None:
    assert {"mi_malloc", "mi_zalloc_aligned", "mi_free", "mi_realloc_aligned"} <= found_in("mi_malloc", "mi_free")


SOURCE = "#define F(name) __attribute__((noinline, used)) void *name(void) { __asm__(\"\"); return 0; }\n" + " ".join(
    f"F({name})" for name in (*JEMALLOC, "je_malloc_usable_size")
)  # fmt: skip


def opened(tmp_path: Path, main: str, *probed: str) -> OpenBinary:
    path = build(tmp_path, f"{SOURCE}\nint main(void) {{ {main} return 0; }}", "-O1")
    image = Image.open(str(path))
    symbols = read_symbol_table(image)
    placements = [
        (1, place_at_entry(Site(FunctionSpec(name, Operation.ALLOC), str(path), 0, symbol.address)))
        for name in probed for symbol in symbols.find(name)
    ]  # fmt: skip
    return cast(OpenBinary, SimpleNamespace(image=image, symbols=symbols, placements=placements, is_stale=False))


@pytest.mark.parametrize(("main", "whole"), [
    ("je_malloc(); je_mallocx();", True), ("je_xallocx();", False), ("je_malloc_usable_size();", False),
])  # fmt: skip
def test_all_blocks_are_known_unless_they_may_grow_unseen(tmp_path: Path, main: str, whole: bool) -> None:
    binary = opened(tmp_path, main, "je_malloc", "je_mallocx")
    assert has_embedded(binary)
    assert is_embedded_whole(binary) == whole


def test_without_its_functions_there_is_none(tmp_path: Path) -> None:
    for probed in ((), ("je_malloc",)):
        binary = opened(tmp_path, "je_malloc();", *probed)
        assert not has_embedded(binary)
        assert not is_embedded_whole(binary)
