"""Code that a program maps, replaces, moves and takes away itself: each leak has the name of what stood there then."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import Refleak
from traced_report import Run, callers

pytestmark = pytest.mark.needs("holds")

A, B = "libcodea.so", "libcodeb.so"


def leaks_by_code(run: Run) -> Counter[tuple[str | None, str | None]]:
    """Return how many blocks (function, module) of the mapped code leaked; a function without a name is None."""
    found: Counter[tuple[str | None, str | None]] = Counter()
    for leak in run.leaks:
        is_of_code = leak["bytes"] in (leak["count"] * 89, leak["count"] * 97)
        if leak["state"] == "leaked" and leak["kind"] == "allocation" and is_of_code:
            found[callers(leak)[0]["function"], callers(leak)[0]["module"]] += leak["count"]
    return found


@pytest.mark.parametrize(
    ("case", "caller", "expected"),
    [
        ("turns", "in_turns", {("code_a_0", A): 35, ("code_b_0", B): 55}),
        (
            "over", "one_over_the_other",
            {("code_a_0", A): 20, ("code_b_0", B): 11, ("code_b_1", B): 17, ("code_a_2", A): 19},
        ),
        ("mremap", "moved", {("code_a_0", A): 18, ("code_b_0", B): 13, ("code_a_1", A): 17}),
        ("mprotect", "made_executable", {("code_a_0", A): 18, ("code_b_0", B): 13}),
        ("unseen", "unseen", {("code_a_0", A): 21}),
        ("fork", "in_a_child", {("code_a_0", A): 20, ("code_b_0", B): 11}),
    ],
)  # fmt: skip
def test_each_leak_has_the_name_of_its_code(
    refleak: Refleak, case: str, caller: str, expected: dict[tuple[str, str], int]
) -> None:
    run = refleak(target=("own_code", case))
    run.check_whole()
    assert leaks_by_code(run) == expected
    leaked = [leak for leak in run.below(caller, "allocation") if leak["state"] == "leaked"]
    for leak in leaked:
        names = [frame["function"] for frame in callers(leak)]
        assert (names[1:4], names[-1]) == (["call", caller, "main"], "_start")
        assert leak["stack_status"] == "complete"
    assert sum(leak["count"] for leak in leaked) == sum(expected.values())


def test_code_in_no_file_has_no_name(refleak: Refleak) -> None:
    """It stands where a library stood before."""
    run = refleak(target=("own_code", "copy"))
    run.check_whole()
    assert leaks_by_code(run) == {("code_a_0", A): 7, (None, None): 5 * 11 + 13}
    for leak in run.leaks:
        if leak["bytes"] == leak["count"] * 97:
            assert leak["stack_status"] != "complete"
