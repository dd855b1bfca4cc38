"""Each function that allocates: what it made, what went, and who called it. Numbers: targets/README.md."""

from __future__ import annotations

import pytest
from conftest import Refleak
from traced_report import callers, functions

BYTES = {"calloc": 91, "reallocarray": 91, "aligned_alloc": 128}
SAME_CODE = {"aligned_alloc": ("aligned_alloc", "memalign"), "memalign": ("aligned_alloc", "memalign")}
"""Names of one address in glibc: a report can say either."""
FUNCTIONS = (
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_allocation_function(refleak: Refleak, function: str) -> None:
    run = refleak(target=("alloc_functions", function))
    run.check_whole()
    size = BYTES.get(function, 101)
    assert run.blocks == (28, 11, 17, 17 * size)
    [leak] = run.leaks
    assert (leak["kind"], leak["state"], leak["count"], leak["bytes"]) == ("allocation", "leaked", 17, 17 * size)
    assert leak["type"] in SAME_CODE.get(function, (function,))
    assert (leak["size_min"], leak["size_max"], leak["made"], leak["freed"]) == (size, size, 17, 0)
    inner = ["aligned"] if function == "posix_memalign" else []
    assert functions(callers(leak))[: len(inner) + 2] == [*inner, f"leak_{function}", "main"]
    assert functions(callers(leak))[-1] == "_start"
    assert (leak["stack_complete"], leak["stack_status"]) == (True, "complete")
    assert leak["own_frame"] == 1


def test_addresses_and_ages_of_a_sample_are_given(refleak: Refleak) -> None:
    run = refleak(target=("alloc_functions", "malloc"))
    [leak] = run.leaks
    addresses = [int(instance["address"], 16) for instance in leak["instances"]]
    assert len(set(addresses)) == len(addresses) > 0
    assert all(address % 16 == 0 for address in addresses)
    ages = [instance["age_ns"] for instance in leak["instances"]]
    assert ages == sorted(ages, reverse=True) and ages[-1] > 0
    assert {instance["size"] for instance in leak["instances"]} == {101}


def test_allocations_that_fail_are_nothing(refleak: Refleak) -> None:
    run = refleak(target=("failed_alloc",))
    run.check_whole()
    assert (run.blocks, run.leaks, run.report["notes"]) == ((0, 0, 0, 0), [], [])


def test_free_of_null_is_nothing(refleak: Refleak) -> None:
    run = refleak(target=("free_null",))
    run.check_whole()
    assert (run.blocks, run.leaks, run.report["notes"]) == ((0, 0, 0, 0), [], [])


def test_a_wrapper_that_calls_malloc_counts_once(refleak: Refleak) -> None:
    run = refleak(target=("nested",))
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_direct", 7, 1043), ("malloc", "pool_malloc", 11, 1705)]
    assert run.blocks == (11 + 5 + 7 + 2 * 3, 5 + 2 * 3, 18, 2748)


@pytest.mark.parametrize("is_named", [False, True])
def test_an_allocator_over_another_counts_once(refleak: Refleak, targets: object, is_named: bool) -> None:
    run = refleak(*(("--allocator", f"{targets}/libwrap.so") if is_named else ()), target=("nested_wrapped",))
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_direct", 7, 1043), ("malloc", "pool_malloc", 11, 1705)]
    assert run.blocks == (11 + 5 + 7 + 2 * 3, 5 + 2 * 3, 18, 2748)


def test_blocks_freed_by_other_threads(refleak: Refleak) -> None:
    run = refleak(target=("threads",))
    run.check_whole()
    [leak] = run.below("allocate_in_thread", "allocation")
    assert (leak["type"], leak["count"], leak["bytes"]) == ("malloc", 31, 31 * 67)
    assert (leak["made"], leak["freed"]) == (3030, 2999)
    assert {leak["state"] for leak in run.leaks} <= {"leaked"}
    assert leak["stack_complete"]


def test_a_clean_program_gives_an_empty_report(refleak: Refleak) -> None:
    run = refleak("--error-exitcode", "99", target=("clean", "quiet"))
    run.check_whole(0)
    assert (run.leaks, run.report["errors"], run.report["notes"]) == ([], [], [])
    assert run.blocks == (3027, 3027, 0, 0)
    assert run.types == {"thing": (1009, 1009, 2018, 1009, 0)}
    assert run.report["totals"]["mappings"] == {"outstanding": 0, "outstanding_bytes": 0}
    assert run.report["suppressed"] == {"count": 0, "bytes": 0, "entries": []}


def test_the_buffer_of_stdout_is_no_leak(refleak: Refleak) -> None:
    run = refleak("--error-exitcode", "99", target=("clean",))
    run.check_whole(0)
    assert run.leaks == []
    assert run.stdout == "".join(f"{i}\n" for i in range(1009))


def test_cpp_new_and_delete_and_exceptions_in_threads(refleak: Refleak) -> None:
    run = refleak(target=("cpp",))
    run.check_whole()

    def one(function: str) -> tuple[int, int, str, bool]:
        [leak] = run.below(function)
        return leak["count"], leak["bytes"], leak["type"], leak["stack_complete"]

    assert one("leak_new()") == (7, 259, "malloc", True)
    assert one("leak_new_array()") == (5, 205, "malloc", True)
    assert one("leak_before_throw()") == (13, 559, "malloc", True)
    assert run.below("delete_both()") == []
    [leak] = run.below("leak_before_throw()")
    names = functions(callers(leak))
    at = names.index("leak_before_throw()")
    assert names[at + 1 : at + 21] == ["descend(int, bool)"] * 20
    assert names[at + 21] == "throw_in_thread(bool)"
    assert run.below("__cxa_throw") == []  # 52 exceptions, each freed when it was caught
