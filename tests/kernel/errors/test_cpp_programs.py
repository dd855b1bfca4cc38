"""Correct C++ programs of the distribution have no errors, under libc, jemalloc, tcmalloc and mimalloc.

Some of them; all with REFLEAK_ALL_HEAP_PROGRAMS=1.
"""

from __future__ import annotations

import os
from itertools import product

import pytest
from conftest import Refleak
from cpp_programs import ALLOCATORS, PROGRAMS, command_of, is_here

FEW = [
    ("llvm-cxxfilt", "libc"), ("gdb", "libc"), ("fish", "jemalloc"), ("lld", "tcmalloc"), ("apt-config", "libc"),
]  # fmt: skip
CHOSEN = list(product(PROGRAMS, ALLOCATORS)) if os.environ.get("REFLEAK_ALL_HEAP_PROGRAMS") else FEW


@pytest.mark.parametrize(("program", "allocator"), CHOSEN, ids=str)
def test_correct_programs_have_no_errors(refleak: Refleak, program: str, allocator: str) -> None:
    if not is_here(program, allocator):
        pytest.skip(f"needs {PROGRAMS[program][0]} and {allocator}")
    run = refleak("--heap-only", target=command_of(program, allocator), timeout=400)
    assert run.report["errors"] == []
    assert run.report["totals"]["allocations"]["freed"] > 0
