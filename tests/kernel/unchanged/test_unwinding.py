"""Programs that unwind their stack, or look at it, do what they do untraced. Numbers: targets/unwinding.cc."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Refleak
from patience import TIMEOUT_SECONDS
from traced_report import Run

THINGS = ("--refs-only", "--type", "thing:create=make_*,put=drop_thing(object=arg0)")
NODES = ("--refs-only", "--type", "node:create=_ZN4NodeC2E*(object=arg0),put=_ZN4NodeD2Ev(object=arg0)")
THROWS, MADE = 211, 13

Both = Callable[..., Run]


@pytest.fixture
def both(refleak: Refleak, targets: Path) -> Both:
    """Give a function that runs a target untraced and traced, and returns the trace, if both said and did the same."""

    def run(*options: str, target: tuple[str, ...], environment: tuple[tuple[str, str], ...] = ()) -> Run:
        alone = subprocess.run(
            [targets / target[0], *target[1:]], capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
            env=dict(os.environ) | dict(environment),
        )  # fmt: skip
        traced = refleak(*options, target=target, environment=environment)
        assert (traced.status, traced.stdout) == (alone.returncode, alone.stdout), traced.stderr
        assert alone.stdout
        return traced

    return run


@pytest.mark.parametrize("program", ["unwinding", "unwinding-jemalloc", "unwinding-tcmalloc"])
def test_a_failed_new_throws_what_is_caught(both: Both, program: str) -> None:
    run = both(target=(program, "bad_alloc"))
    run.check_whole()
    assert run.stdout == f"bad_alloc {THROWS}\n"
    [leak] = [leak for leak in run.leaks if leak["bytes"] == 137]
    assert leak["count"] == 1


def test_an_object_whose_constructor_throws_was_never_made(both: Both) -> None:
    run = both(*NODES, target=("unwinding", "constructor"))
    run.check_whole()
    assert run.types == {"node": (106, 0, 106, 106, 0)}


@pytest.mark.parametrize("program", ["unwinding", "unwinding-own-runtime"])
def test_exceptions_pass_functions_that_should_make_something(both: Both, program: str) -> None:
    run = both(*THINGS, target=(program, "throwing"))
    run.check_whole()
    assert run.types == {"thing": (106, 0, 106, 106, 0)}


def test_exceptions_pass_many_such_functions_at_once(both: Both) -> None:
    run = both(*THINGS, target=("unwinding", "nested"))
    run.check_whole()
    assert run.types == {}


@pytest.mark.parametrize("program", ["unwinding", "unwinding-own-runtime"])
def test_what_a_function_makes_after_it_caught_an_exception_is_seen(both: Both, program: str) -> None:
    run = both(*THINGS, target=(program, "catching"))
    run.check_whole()
    assert run.types == {"thing": (MADE, 0, 0, 0, MADE)}


@pytest.mark.parametrize("program", ["unwinding", "unwinding-own-runtime"])
def test_a_backtrace_is_that_of_the_program_alone(both: Both, program: str) -> None:
    run = both(*THINGS, target=(program, "looking"))
    run.check_whole()
    assert run.stdout.count("make_looking") == MADE * (MADE + 1) // 2
    assert run.types == {"thing": (MADE, 0, 0, 0, MADE)}


def test_a_cancelled_thread_cleans_up(both: Both) -> None:
    run = both("--preset", "fd", target=("unwinding", "cancelled"))
    assert run.stdout == "cleaned up\n" * MADE + f"cancelled {MADE}\n"
    run.check_whole()
    assert run.below("open_forever(void*)") == []


def test_a_thread_that_exits_within_such_a_function_cleans_up(both: Both) -> None:
    run = both("--type", THINGS[2], target=("unwinding", "exiting"))
    assert run.stdout == "cleaned up\n" * MADE + f"exiting {MADE}\n"
    assert run.below("exit_within(void*)") == []


@pytest.mark.parametrize("mode", ["jumping", "switching", "forking"])
def test_other_ways_out(both: Both, mode: str) -> None:
    both(*THINGS, target=("unwinding", mode))


@pytest.mark.parametrize("mode", ["throwing", "catching", "looking"])
def test_no_return_probe_is_where_the_unwinder_cannot_be_found(both: Both, mode: str) -> None:
    run = both("--type", THINGS[2], target=("unwinding-own-runtime-stripped", mode))
    refused = {(entry["function"], entry["reason"]) for entry in run.report["probes"]["unresolved"]}
    assert ("make_catching", "a return probe would end its exceptions: its unwinder has no symbols") in refused


def test_the_heap_checker_of_gperftools_finds_what_it_finds(both: Both) -> None:
    both(target=("heap-checked", "catching"), environment=(("HEAPCHECK", "strict"),))
