"""An allocator that is known by its name is probed, and its frames are an allocator's."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tracer.analysis.runtime import is_allocator
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
