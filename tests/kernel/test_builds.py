"""The same targets built otherwise: static, stripped, for musl."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Json, callers, functions

NOTHING_TO_PROBE = 67


def need(targets: Path, name: str) -> None:
    if not (targets / name).exists():
        pytest.skip("needs musl-gcc (Debian: musl-tools)")


@pytest.mark.parametrize("build", ["static", "stripped", "musl"])
@pytest.mark.parametrize("function", ["malloc", "calloc", "realloc", "aligned_alloc"])
def test_allocation_functions(refleak: Refleak, targets: Path, build: str, function: str) -> None:
    need(targets, f"alloc_functions-{build}")
    run = refleak(target=(f"alloc_functions-{build}", function))
    run.check_whole()
    size = {"calloc": 91, "aligned_alloc": 128}.get(function, 101)
    [leak] = run.leaks
    assert (leak["kind"], leak["count"], leak["bytes"], leak["made"], leak["freed"]) == (
        "allocation", 17, 17 * size, 17, 0,
    )  # fmt: skip
    names = functions(callers(leak))
    if build == "stripped":
        assert {frame["module"] for frame in callers(leak)[:2]} == {"alloc_functions-stripped"}
        assert names[:2] == [None, None] and callers(leak)[0]["why_unknown"]
    else:
        assert names[:2] == [f"leak_{function}", "main"]
    check_end(leak, build)


def check_end(leak: Json, build: str) -> None:
    """Debian's musl has no unwind tables: a stack ends in it, above main, and says so."""
    if build == "musl":
        assert (leak["stack_complete"], leak["stack_status"]) == (False, "no-table")
        assert callers(leak)[-1]["module"].startswith(("ld-musl", "libc.musl"))
    else:
        assert (leak["stack_complete"], leak["stack_status"]) == (True, "complete")


@pytest.mark.parametrize("build", ["static", "musl"])
def test_threads(refleak: Refleak, targets: Path, build: str) -> None:
    need(targets, f"threads-{build}")
    run = refleak(target=(f"threads-{build}",))
    run.check_whole()
    [leak] = run.below("allocate_in_thread", "allocation")
    assert (leak["count"], leak["bytes"]) == (31, 31 * 67)
    assert (leak["made"], leak["freed"]) == (3030, 2999)


@pytest.mark.parametrize("build", ["static", "musl"])
def test_references(refleak: Refleak, targets: Path, build: str) -> None:
    need(targets, f"refs_leak-{build}")
    run = refleak("--refs-only", target=(f"refs_leak-{build}",))
    run.check_whole()
    assert run.types == {"a": (13, 0, 6, 6, 7), "b": (11, 11, 12, 6, 5), "c": (5, 15, 17, 2, 3)}


@pytest.mark.parametrize("build", ["static", "musl"])
def test_clean(refleak: Refleak, targets: Path, build: str) -> None:
    need(targets, f"clean-{build}")
    run = refleak(target=(f"clean-{build}", "quiet"))
    run.check_whole()
    assert (run.leaks, run.types) == ([], {"thing": (1009, 1009, 2018, 1009, 0)})
    assert run.report["totals"]["allocations"]["freed"] == 3027


@pytest.mark.parametrize(
    ("case", "kind", "leaf", "size"),
    [("grow", "realloc", "grow", 100003), ("to_zero", "realloc", "to_zero", 0), ("fail", "malloc", "allocate", 109)],
)
def test_musl_realloc(refleak: Refleak, targets: Path, case: str, kind: str, leaf: str, size: int) -> None:
    need(targets, "realloc_cases-musl")
    run = refleak(target=("realloc_cases-musl", case))
    run.check_whole()
    assert run.alive("allocation") == [(kind, leaf, 13, 13 * size)]


def test_musl_deep(refleak: Refleak, targets: Path) -> None:
    need(targets, "deep-musl")
    run = refleak(target=("deep-musl", 100))
    run.check_whole()
    [leak] = run.leaks
    assert functions(callers(leak))[:102] == ["leak_at_bottom"] + ["descend"] * 100 + ["main"]
    check_end(leak, "musl")


def test_a_signal_handler_in_a_static_program(refleak: Refleak) -> None:
    run = refleak(target=("signal_handler-static",))
    run.check_whole()
    [leak] = run.leaks
    names = functions(callers(leak))
    assert (leak["count"], leak["bytes"], leak["stack_complete"]) == (13, 1703, True)
    assert names[:2] == ["leak_in_handler", "on_alarm"]
    assert names.index("raise_alarm") + 1 == names.index("main")


def test_nothing_to_probe_is_said_at_once(refleak: Refleak) -> None:
    run = refleak(target=("short-static-stripped",))
    assert run.status == NOTHING_TO_PROBE
    assert "--allocator" in run.stderr


def test_a_stripped_program_has_no_stubs_to_see(refleak: Refleak) -> None:
    run = refleak(target=("refs_leak-stripped",))
    assert run.status == 0
    assert run.types == {}


def test_an_allocator_that_is_not_known_by_its_name(refleak: Refleak, targets: Path) -> None:
    """musl's own library under a name that no list has."""
    need(targets, "short-musl")
    loader = Path("/lib/ld-musl-x86_64.so.1").resolve()
    run = refleak("--allocator", loader, target=("short-musl",))
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_and_leave", 31, 4681)]
