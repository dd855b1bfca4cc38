"""Objects whose block is freed while they are counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import functions

HERE = Path(__file__).parent

@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("freed") / "freed_counters"
    command = ["gcc", "-O1", "-g", "-w", "-fno-optimize-sibling-calls", "-o", str(path)]
    subprocess.run([*command, str(HERE / "freed_counters.c")], check=True, timeout=100)
    return path


@pytest.mark.parametrize(
    ("case", "kind", "freed_by", "last_get"),
    [
        ("alone", "freed-past-counter", "drop_block", None),
        ("used", "freed-while-counted", "drop_block", "use"),
        ("embedded", "freed-while-counted", "drop_block", "use"),
    ],
)
def test_freed(refleak: Refleak, program: Path, case: str, kind: str, freed_by: str, last_get: str | None) -> None:
    run = refleak("--no-mappings", "--error-exitcode", 9, target=(program, case))
    assert run.report["complete"], run.report["lost"]
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"]) == (kind, 1)
    assert freed_by in functions(error["stack"])[:2]
    assert functions(error["created_at"])[:2] == ["__refcnt__init", "create"]
    got = error["last_get"]
    assert (functions(got)[0] if got else None) == last_get
    assert [leak for leak in run.leaks if leak["kind"] == "reference"] == []
    assert run.status == (0 if case == "alone" else 9)


POOL = "alloc pool:alloc=pool_alloc(size=arg0),realloc=pool_move(size=arg1),free=pool_free"


@pytest.mark.parametrize(
    ("case", "options", "freed_by"),
    [
        ("pool", ("--no-mappings", "--type", POOL), "main"),
        ("unmapped", (), "drop_pages"),
        ("unmapped-part", (), "drop_pages"),
        ("replaced", (), "replace_page"),
    ],
)
def test_other_memory(refleak: Refleak, program: Path, case: str, options: tuple[str, ...], freed_by: str) -> None:
    """Of allocators that were described, and of munmap, wherever in the mapping the object was."""
    run = refleak(*options, "--error-exitcode", 9, target=(program, case))
    assert run.report["complete"], run.report["lost"]
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"]) == ("freed-while-counted", 1)
    assert freed_by in functions(error["stack"])[:2]
    assert functions(error["created_at"])[:2] == ["__refcnt__init", "create"]
    assert functions(error["last_get"])[0] == "use"
    assert [leak for leak in run.leaks if leak["kind"] == "reference"] == []
    assert run.status == 9


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("pool-moved", ("--type", POOL)), ("unmapped-beside", ()), ("unmapped-in-vain", ()), ("remapped", ()),
        ("replaced-beside", ()), ("replaced-shared", ()),
        ("unmapped", ("--no-mappings",)),
    ],
)  # fmt: skip
def test_other_memory_that_is_there(refleak: Refleak, program: Path, case: str, options: tuple[str, ...]) -> None:
    """A pool's realloc moves, as mremap does; a munmap that fails, or of other pages, ends nothing."""
    run = refleak(*options, target=(program, case))
    assert run.report["errors"] == []
    assert sum(leak["count"] for leak in run.leaks if leak["kind"] == "reference") == 1


@pytest.mark.parametrize(("case", "alive"), [("static", 1), ("moved", 1), ("put", 0)])
def test_not_freed(refleak: Refleak, program: Path, case: str, alive: int) -> None:
    """Static memory is never freed; what realloc moves has not ended; nor is it an error to free after the last put."""
    run = refleak("--no-mappings", target=(program, case))
    assert run.report["errors"] == []
    assert sum(leak["count"] for leak in run.leaks if leak["kind"] == "reference") == alive


def test_without_blocks_it_is_not_looked_into(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", "--refs-only", target=(program, "used"))
    assert run.report["errors"] == []
    assert [scan["reason"] for scan in run.report["scans"]] == ["blocks were not traced (--refs-only)"]
