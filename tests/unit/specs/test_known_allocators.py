"""An allocator that is known by its name is probed, and its frames are an allocator's."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tracer.analysis.runtime import is_allocator
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.model.allocator_names import ALLOCATORS
from tracer.model.frames import Frame
from tracer.specs.allocators import HEAP


@pytest.mark.parametrize("name", ALLOCATORS)
@pytest.mark.parametrize("ending", [".so", ".so.2", "_minimal.so.4", "shim.so"])
def test_what_is_known_is_probed_and_passed_over(name: str, ending: str) -> None:
    library = f"lib{name}{ending}"
    for function in ("malloc", "free", "_Znwm"):
        specs = [spec for spec in HEAP.functions if spec.function == function]
        assert any(fnmatchcase(library, pattern) for spec in specs for pattern in spec.libraries), function
    assert is_allocator(Frame("anything", module=library))


@pytest.mark.parametrize("library", ["libmalloc.so", "libjem.so.2", "libfoo.so"])
def test_others_are_libraries_like_any(library: str) -> None:
    assert not any(fnmatchcase(library, pattern) for spec in HEAP.functions for pattern in spec.libraries)
    assert not is_allocator(Frame("anything", module=library))


OWN = re.compile(r"(mi|tc)_(?!heap_)\w*(alloc|new|free|memalign)\w*|[smrd]d?allocx")
NOT_OF_BLOCKS = {
    "mi_reallocarr",  # moves what its argument points at: NetBSD's
    "mi_register_deferred_free", "mi_malloc_size", "mi_malloc_usable_size", "mi_malloc_good_size",
    "tc_malloc_size", "tc_malloc_stats", "tc_set_new_mode", "tc_query_new_mode", "tc_nallocx", "sallocx",
}  # fmt: skip


@pytest.mark.parametrize("library", ["libjemalloc", "libtcmalloc", "libmimalloc"])
def test_all_functions_of_its_own_are_probed(library: str) -> None:
    """A name may be another one of a function that is known."""
    found = Path("/usr/lib/x86_64-linux-gnu").glob(f"{library}.so.[0-9]*")
    path = min(found, key=lambda each: len(each.name), default=None)
    if path is None:
        pytest.skip(f"needs {library}")
    with Image.open(path) as image:
        symbols = [symbol for symbol in read_symbol_table(image).matching("*") if symbol.kind == STT_FUNC]
        known = {spec.function for spec in HEAP.functions if any(fnmatchcase(path.name, p) for p in spec.libraries)}
        covered = {symbol.address for symbol in symbols if symbol.name in known}
        own = [symbol for symbol in symbols if OWN.fullmatch(symbol.name) and symbol.name not in NOT_OF_BLOCKS]
        assert len(own) > 3
        assert [symbol.name for symbol in own if symbol.address not in covered] == []
