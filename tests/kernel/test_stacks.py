"""Stacks: deep ones, callbacks, signal handlers, calls that never return."""

from __future__ import annotations

from conftest import Refleak
from traced_report import callers, functions

MOST_FRAMES = 127


def test_a_stack_of_a_hundred_frames_is_whole(refleak: Refleak) -> None:
    run = refleak(target=("deep", 100))
    run.check_whole()
    [leak] = run.leaks
    names = functions(callers(leak))
    assert names[:102] == ["leak_at_bottom"] + ["descend"] * 100 + ["main"]
    assert names[-1] == "_start" and len(names) == 105
    assert (leak["count"], leak["bytes"], leak["stack_complete"]) == (5, 515, True)


def test_a_stack_of_two_hundred_frames_is_cut_and_says_so(refleak: Refleak) -> None:
    run = refleak(target=("deep", 200))
    [leak] = run.leaks
    assert functions(callers(leak)) == ["leak_at_bottom"] + ["descend"] * (MOST_FRAMES - 1)
    assert (leak["count"], leak["stack_complete"], leak["stack_status"]) == (5, False, "truncated")


def test_callbacks_of_qsort(refleak: Refleak) -> None:
    run = refleak(target=("qsort_callback",))
    run.check_whole()
    leaks = run.below("compare_and_strdup")
    assert (sum(leak["count"] for leak in leaks), sum(leak["bytes"] for leak in leaks)) == (7, 77)
    for leak in leaks:
        names = functions(callers(leak))
        at = names.index("compare_and_strdup")
        assert names[0] in ("strdup", "__strdup", "__GI___strdup") and at == 1
        first = names.index("descend")
        assert names[first : first + 11] == ["descend"] * 10 + ["main"]
        assert {frame["module"] for frame in callers(leak)[at + 1 : first]} == {"libc.so.6"}
        assert leak["stack_complete"] and names[-1] == "_start"


def test_a_signal_handler_shows_what_it_interrupted(refleak: Refleak) -> None:
    run = refleak(target=("signal_handler",))
    run.check_whole()
    [leak] = run.leaks
    names = functions(callers(leak))
    assert (leak["count"], leak["bytes"], leak["stack_complete"]) == (13, 1703, True)
    assert names[:2] == ["leak_in_handler", "on_alarm"]
    assert names[2] in ("__restore_rt", None) and callers(leak)[2]["module"] == "libc.so.6"
    assert names.index("raise_alarm") + 1 == names.index("main")
    raised = callers(leak)[3 : names.index("raise_alarm")]
    assert {frame["module"] for frame in raised} == {"libc.so.6"} and "raise" in {f["function"] for f in raised}


def test_malloc_left_by_longjmp(refleak: Refleak) -> None:
    run = refleak(target=("longjmp", "malloc"))
    assert run.status == 0, run.stderr
    assert run.alive("allocation") == [("malloc", "leak_after_longjmp", 11, 1243)]
    assert run.blocks == (11, 0, 11, 1243)
    [(reason, count)] = run.lost.items()
    assert "never returned" in reason and count == 7
    assert run.report["complete"] is False


def test_qsort_left_by_longjmp(refleak: Refleak) -> None:
    run = refleak(target=("longjmp", "qsort"))
    assert run.status == 0, run.stderr
    leaks = run.below("compare_and_leak")
    assert (sum(leak["count"] for leak in leaks), sum(leak["bytes"] for leak in leaks)) == (5, 635)
    assert all("interrupted_qsort" in functions(callers(leak)) for leak in leaks)
