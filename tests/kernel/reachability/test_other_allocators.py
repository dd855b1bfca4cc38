"""What is lost under allocators that take the place of libc's, whose own books point at every block."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import callers, functions

SOURCE = Path(__file__).parent / "replaced.c"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
ALLOCATORS = {
    "libc": None, "jemalloc": LIBRARIES / "libjemalloc.so.2", "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "mimalloc": LIBRARIES / "libmimalloc.so.2.0",
}  # fmt: skip
LOST = {"make_lost": 4, "make_small_lost": 50, "make_child": 20, "make_lost_mapping": 2, "make_held": 1}
"""The last one is a variable's of a thread that ended."""


def classes(refleak: Refleak, program: Path, allocator: str) -> Counter[tuple[str, str]]:
    """Return the program's own blocks and mappings by class and maker."""
    library = ALLOCATORS[allocator]
    preload = [f"LD_PRELOAD={library}"] if library is not None else []
    run = refleak("--reachability", "auto", target=("/usr/bin/env", *preload, program))
    found: Counter[tuple[str, str]] = Counter()
    for leak in run.leaks:
        maker = next((name for name in functions(callers(leak)) if name and name.startswith("make_")), None)
        if maker:
            found["lost" if leak["reachability"] in ("lost", "indirect") else "reachable", maker] += leak["count"]
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("replaced") / "replaced")


def built(path: Path, *options: str) -> Path:
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-o", str(path), str(SOURCE), *options]
    subprocess.run(command, check=True, timeout=100)
    return path


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_books_hold_nothing(refleak: Refleak, program: Path, allocator: str) -> None:
    found = classes(refleak, program, allocator)
    assert found == {**{("lost", maker): count for maker, count in LOST.items()}, ("reachable", "make_held"): 52}


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_room_that_a_program_asks_for_holds(refleak: Refleak, tmp_path: Path, allocator: str) -> None:
    found = classes(refleak, built(tmp_path / "asks", "-DASKS"), allocator)
    assert found["lost", "make_held"] == LOST["make_held"]
    assert found["lost", "make_small_lost"] >= 45


def test_a_block_that_grew_unseen_holds(refleak: Refleak, tmp_path: Path) -> None:
    """xallocx is not probed: what is in no known block may be one."""
    library = str(ALLOCATORS["jemalloc"])
    program = built(tmp_path / "grows", "-DGROWS", library, f"-Wl,-rpath,{LIBRARIES}")
    assert classes(refleak, program, "jemalloc")["lost", "make_held"] <= LOST["make_held"]
