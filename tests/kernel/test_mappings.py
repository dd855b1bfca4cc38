"""mmap, munmap and mremap, whole and in part."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import callers, functions

PAGE = 4096


def test_mmap(refleak: Refleak) -> None:
    run = refleak(target=("alloc_functions", "mmap"))
    run.check_whole()
    assert run.blocks == (0, 0, 0, 0)
    assert run.report["totals"]["mappings"] == {"outstanding": 17, "outstanding_bytes": 17 * PAGE}
    [leak] = run.leaks
    assert (leak["kind"], leak["type"], leak["count"], leak["bytes"]) == ("mapping", "mmap", 17, 17 * PAGE)
    assert functions(callers(leak))[:3] == ["map", "leak_mmap", "main"]


def test_mremap(refleak: Refleak) -> None:
    run = refleak(target=("alloc_functions", "mremap"))
    run.check_whole()
    assert run.report["totals"]["mappings"] == {"outstanding": 17, "outstanding_bytes": 17 * 3 * PAGE}
    [leak] = run.below("leak_mremap")
    assert (leak["kind"], leak["count"], leak["bytes"]) == ("mapping", 17, 17 * 3 * PAGE)
    assert run.below("release_mremap") == []


@pytest.mark.parametrize(
    ("case", "pages"),
    [
        ("start", [5]),
        ("end", [5]),
        ("middle", [3, 2]),
        ("several", [2, 2]),
        ("move", [3]),
        ("grow", [5]),
        ("shrink", [5]),
    ],
)
def test_what_is_left_of_a_mapping(refleak: Refleak, case: str, pages: list[int]) -> None:
    run = refleak(target=("munmap_parts", case))
    run.check_whole()
    total = {"outstanding": len(pages), "outstanding_bytes": sum(pages) * PAGE}
    assert run.report["totals"]["mappings"] == total
    sizes = [instance["size"] for leak in run.leaks for instance in leak["instances"]]
    assert sorted(sizes) == sorted(size * PAGE for size in pages)
    assert {leak["type"] for leak in run.leaks} == {"mmap"}
    assert {callers(leak)[0]["function"] for leak in run.leaks} == {"map_pages"}


def test_a_fixed_mapping_replaces_what_it_covers(refleak: Refleak) -> None:
    run = refleak(target=("munmap_parts", "fixed"))
    run.check_whole()
    assert run.alive("mapping") == [("mmap", "map_over", 1, 2 * PAGE), ("mmap", "map_pages", 2, 5 * PAGE)]
    places = sorted(
        (int(instance["address"], 16), instance["size"]) for leak in run.leaks for instance in leak["instances"]
    )
    start = places[0][0]
    assert places == [(start, 2 * PAGE), (start + 2 * PAGE, 2 * PAGE), (start + 4 * PAGE, 3 * PAGE)]


def test_a_program_that_only_maps_memory_is_looked_into(refleak: Refleak, tmp_path: Path) -> None:
    source, program = tmp_path / "maps.c", tmp_path / "maps"
    source.write_text(
        "#include <sys/mman.h>\n"
        "char *kept;\n"
        "int main(void) { kept = mmap(0, 40960, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); return 0; }\n"
    )
    subprocess.run(["gcc", "-o", program, source], check=True, timeout=60)
    (entry,) = refleak("--reachability", "auto", target=(program,)).leaks
    assert (entry["kind"], entry["reachability"], entry["bytes"]) == ("mapping", "reachable", 10 * PAGE)


@pytest.mark.parametrize(("case", "reach"), [("reserved", "reachable"), ("forgotten", "lost")])
def test_what_was_reserved_is_held_with_what_was_mapped_over_it(refleak: Refleak, case: str, reach: str) -> None:
    run = refleak("--reachability", "auto", target=("munmap_parts", case))
    run.check_whole()
    found = Counter[tuple[str, str, str]]()
    for leak in run.leaks:
        found[leak["kind"], leak["reachability"], callers(leak)[0]["function"]] += leak["bytes"] // PAGE
    assert found == {("mapping", reach, "map_pages"): 15, ("mapping", reach, "map_over"): 5}


def test_failed_calls_change_nothing(refleak: Refleak) -> None:
    run = refleak(target=("failed_alloc",))
    assert run.report["totals"]["mappings"] == {"outstanding": 0, "outstanding_bytes": 0}


def test_without_mappings(refleak: Refleak) -> None:
    run = refleak("--no-mappings", target=("alloc_functions", "mmap"))
    run.check_whole()
    assert (run.leaks, run.report["probes"]["attached"]) == ([], 9)


def test_a_forked_childs_copy_is_no_leak_of_its_own(refleak: Refleak) -> None:
    run = refleak(target=("munmap_parts", "fork"))
    run.check_whole()
    assert run.report["totals"]["mappings"] == {"outstanding": 2, "outstanding_bytes": 9 * PAGE}
    found = Counter[tuple[str, str]]()
    for leak in run.leaks:  # some come to map_pages from two lines
        found[leak["state"], callers(leak)[0]["function"]] += leak["bytes"]
    assert found == {
        ("inherited", "map_pages"): 5 * PAGE, ("leaked", "map_over"): 3 * PAGE, ("leaked", "map_pages"): 6 * PAGE,
    }  # fmt: skip
