"""Reference counts through the stubs."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import Refleak
from traced_report import Json, Run, callers, functions


def births(run: Run) -> list[tuple[str, str, int, int]]:
    """Return (type, function that created, objects, their references) of each entry, sorted."""
    return sorted(
        (leak["type"], callers(leak)[0]["function"], leak["count"], leak["instances"][0]["references"])
        for leak in run.leaks if leak["kind"] == "reference"
    )  # fmt: skip


def calls(counted: list[Json]) -> Counter[str]:
    """Return how often each function called the stub. One line can be several calls, in an unrolled loop."""
    counts: Counter[str] = Counter()
    for call in counted:
        counts[call["stack"][0]["function"]] += call["count"]
    return counts


def test_objects_alive_at_exit(refleak: Refleak) -> None:
    run = refleak(target=("refs_leak",))
    run.check_whole()
    assert run.types == {"a": (13, 0, 6, 6, 7), "b": (11, 11, 12, 6, 5), "c": (5, 15, 17, 2, 3)}
    assert births(run) == [("a", "create_a", 7, 1), ("b", "create_b", 5, 2), ("c", "create_c", 3, 1)]
    of = {leak["type"]: leak for leak in run.leaks}
    assert (calls(of["a"]["gets"]), calls(of["a"]["puts"])) == ({}, {})
    assert (calls(of["b"]["gets"]), calls(of["b"]["puts"])) == ({"use_b": 5}, {})
    assert (calls(of["c"]["gets"]), calls(of["c"]["puts"])) == ({"hold_c": 9}, {"release_c": 9})
    assert run.errors == {}
    assert {leak["state"] for leak in run.leaks} == {"leaked"}
    assert [functions(of[name]["stack"])[1] for name in "abc"] == ["main"] * 3
    assert all(leak["bytes"] is None and leak["stack_complete"] for leak in run.leaks)


def test_thirty_threads_balance(refleak: Refleak) -> None:
    run = refleak("--refs-only", target=("refs_threads",))
    run.check_whole()
    assert run.types == {"shared": (1, 30270, 30271, 1, 0)}
    assert (run.leaks, run.errors) == ([], {})


def test_over_put(refleak: Refleak) -> None:
    run = refleak(target=("over_put",))
    run.check_whole()
    assert (run.leaks, run.errors) == ([], {("over-put", "thing"): 7})
    [error] = run.report["errors"]
    assert functions(error["stack"])[:2] == ["put_once_too_often", "main"]
    assert functions(error["released_at"])[:2] == ["last_put", "main"]
    assert functions(error["created_at"])[:3] == ["__refcnt__init", "create_thing", "main"]
    assert run.types == {"thing": (7, 0, 7, 7, 0)}  # what is too often is an error, not a put


def test_use_after_zero(refleak: Refleak) -> None:
    run = refleak(target=("use_after_zero",))
    run.check_whole()
    assert (run.leaks, run.errors) == ([], {("use-after-zero", "thing"): 5})
    [error] = run.report["errors"]
    assert functions(error["stack"])[:2] == ["get_after_zero", "main"]
    assert functions(error["released_at"])[:2] == ["last_put", "main"]
    assert functions(error["created_at"])[:3] == ["__refcnt__init", "create_thing", "main"]
    assert run.types == {"thing": (5, 0, 5, 5, 0)}


def test_delete_while_referenced(refleak: Refleak) -> None:
    run = refleak(target=("delete_referenced",))
    run.check_whole()
    assert (run.leaks, run.errors) == ([], {("delete-while-referenced", "thing"): 3})
    [error] = run.report["errors"]
    assert functions(error["stack"])[0] == "delete_while_referenced"
    assert functions(error["created_at"])[:2] == ["__refcnt__init", "create_thing"]
    assert run.types == {"thing": (5, 5, 4, 5, 0)}


def test_initialised_again_while_alive(refleak: Refleak) -> None:
    run = refleak(target=("reinit",))
    run.check_whole()
    assert (run.leaks, run.errors) == ([], {("reinitialised", "thing"): 5})
    [error] = run.report["errors"]
    assert functions(error["stack"])[0] == "init_again"
    assert functions(error["created_at"])[:2] == ["__refcnt__init", "create_thing"]
    assert run.types == {"thing": (10, 0, 5, 10, 0)}


def test_zero_at_birth_makes_no_object(refleak: Refleak) -> None:
    run = refleak(target=("zero_init",))
    run.check_whole()
    assert (run.leaks, run.errors, run.types) == ([], {}, {"thing": (2, 0, 2, 2, 0)})


def test_the_type_is_the_one_of_birth(refleak: Refleak) -> None:
    run = refleak(target=("other_name",))
    run.check_whole()
    assert (run.types, run.errors) == ({"birth": (5, 5, 5, 0, 5)}, {})
    assert births(run) == [("birth", "create_birth", 5, 1)]


def test_an_address_used_again_by_another_type(refleak: Refleak) -> None:
    run = refleak(target=("address_reuse_type",))
    run.check_whole()
    assert (run.types, run.errors) == ({"first": (7, 0, 7, 7, 0), "second": (7, 0, 0, 0, 7)}, {})
    assert births(run) == [("second", "stay_as_second", 7, 1)]


def test_a_first_member_that_is_counted_too(refleak: Refleak) -> None:
    run = refleak(target=("first_member",))
    run.check_whole()
    assert (run.types, run.errors) == ({"inner": (5, 0, 0, 0, 5), "outer": (5, 5, 10, 5, 0)}, {})
    assert births(run) == [("inner", "create_inner", 5, 1)]


def test_a_counter_changed_without_a_stub_is_noted(refleak: Refleak) -> None:
    run = refleak(target=("untracked_change",))
    run.check_whole()
    assert run.types == {"thing": (3, 3, 0, 0, 3)}
    assert births(run) == [("thing", "create_thing", 3, 2)]
    [leak] = run.leaks
    [note] = [note for note in leak["notes"] if "without a traced call" in note]
    assert "all 3" in note and "reads 4 where gets and puts give 2" in note


def test_stubs_of_a_library_that_comes_by_dlopen(refleak: Refleak) -> None:
    run = refleak("--refs-only", target=("dlopen_stubs",))
    run.check_whole()
    assert run.types == {"late": (7, 3, 2, 2, 5)}
    assert births(run) == [("late", "create_late", 1, 4), ("late", "create_late", 4, 1)]


@pytest.mark.parametrize("program", ["refs_leak", "over_put"])
def test_heap_only_sees_no_references(refleak: Refleak, program: str) -> None:
    run = refleak("--heap-only", target=(program,))
    run.check_whole()
    assert (run.types, run.errors, run.leaks) == ({}, {}, [])


def test_refs_only_sees_no_blocks(refleak: Refleak) -> None:
    run = refleak("--refs-only", target=("clean", "quiet"))
    run.check_whole()
    assert run.blocks == (0, 0, 0, 0)
    assert run.types == {"thing": (1009, 1009, 2018, 1009, 0)}
