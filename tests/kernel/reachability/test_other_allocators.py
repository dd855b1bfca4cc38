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
ALL = {**{("lost", maker): count for maker, count in LOST.items()}, ("reachable", "make_held"): 52}


def under(allocator: str, *command: str | Path) -> tuple[str | Path, ...]:
    library = ALLOCATORS[allocator]
    return ("/usr/bin/env", *([f"LD_PRELOAD={library}"] if library is not None else []), *command)


def classes(refleak: Refleak, *command: str | Path) -> Counter[tuple[str, str]]:
    """Return the program's own blocks and mappings by class and maker."""
    run = refleak("--reachability", "auto", target=command)
    found: Counter[tuple[str, str]] = Counter()
    for leak in run.leaks:
        maker = next((name for name in functions(callers(leak)) if name and name.startswith("make_")), None)
        if maker:
            reach = leak["reachability"]
            found["lost" if reach == "indirect" else reach, maker] += leak["count"]
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
    found = classes(refleak, *under(allocator, program))
    assert found == ALL


def test_books_of_an_allocator_that_nobody_knows_hold_nothing(refleak: Refleak, program: Path, targets: Path) -> None:
    assert classes(refleak, "/usr/bin/env", f"LD_PRELOAD={targets}/libfence.so", program) == ALL


GIBIBYTE, LARGE_PAGE = 1 << 30, 1 << 21
BASE_STACK = 1 << 28
"""Of a limit: below it the kernel leaves room all the same."""


def test_a_gibibyte_that_jemalloc_looked_into_last_holds_nothing(refleak: Refleak, program: Path) -> None:
    """It notes in thread-local storage where that begins: here it is in the middle of a lost block. The limit of the
    stack decides where mappings are."""
    limit = BASE_STACK + (lost_at(BASE_STACK, program) % GIBIBYTE // LARGE_PAGE + 1) * LARGE_PAGE
    block = lost_at(limit, program)
    assert block // GIBIBYTE != (block + 5_000_000) // GIBIBYTE, hex(block)
    assert classes(refleak, *placed(limit, program)) == ALL


def lost_at(limit: int, program: Path) -> int:
    """Return where the largest lost block is, with a limit of the stack in bytes."""
    command = placed(limit, program, "tells")
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout
    return int(told.split()[-1], 16)


def placed(limit: int, *command: str | Path) -> tuple[str | Path, ...]:
    """Return a command that runs with a limit of the stack in bytes, at addresses that are the same each time."""
    return ("/usr/bin/prlimit", f"--stack={limit}", "/usr/bin/setarch", "-R", *under("jemalloc", *command))


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_room_that_a_program_asks_for_holds(refleak: Refleak, tmp_path: Path, allocator: str) -> None:
    found = classes(refleak, *under(allocator, built(tmp_path / "asks", "-DASKS")))
    assert found["lost", "make_held"] == LOST["make_held"]
    assert found["lost", "make_small_lost"] >= 45


def test_a_block_that_grew_unseen_holds(refleak: Refleak, tmp_path: Path) -> None:
    """xallocx is not probed: what is in no known block may be one."""
    library = str(ALLOCATORS["jemalloc"])
    program = built(tmp_path / "grows", "-DGROWS", library, f"-Wl,-rpath,{LIBRARIES}")
    assert classes(refleak, *under("jemalloc", program))["lost", "make_held"] <= LOST["make_held"]
