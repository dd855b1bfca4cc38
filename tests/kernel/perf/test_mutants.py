"""perf with stubs and one call changed: a put is left out, a get or a put is made twice; refleak says which."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import CHECKOUT
from traced_perf import Json, TracedPerf, built
from traced_report import callers

sys.path.append(str(CHECKOUT / "examples" / "mutants"))

from call_sites import Code, read_code, write_mutant
from doubled import write_doubled
from perf_program import Perf
from program import Calls

# The function whose code has the call, the put, and the line of the source that asks for it.
LEFT_OUT = [
    ("maps__clone", "map__put", ("maps__clone", 342)),
    ("maps__put", "map__put", ("__maps__purge", 100)),
    ("thread__delete", "maps__put", ("thread__delete", 92)),
]


GET_TWICE = ("maps__insert", "__refcnt__get", ("__maps__insert", 369))
PUT_TWICE = ("thread__delete", "maps__put", ("thread__delete", 92))


def call_in(code: Code, caller: str, callee: str) -> int:
    (address,) = (one for one, called in code.calls.items() if called == callee and code.function(one) == caller)
    return address


def calls(stack: list[Json]) -> Calls:
    return tuple(((frame["function"] or "?").split(".")[0], frame["line"] or 0) for frame in stack)


@pytest.mark.parametrize(("caller", "put", "place"), LEFT_OUT, ids=[place[0] for _, _, place in LEFT_OUT])
def test_the_reference_without_its_put_is_named(
    caller: str, put: str, place: tuple[str, int], perf: TracedPerf, tmp_path: Path
) -> None:
    program = Perf()
    original = read_code(program)
    mutant = tmp_path / "perf"
    write_mutant(original, call_in(original, caller, put), mutant, one_in_four=False)
    known = {leak["id"] for leak in perf.trace(built("perf"), "report")["leaks"]}
    kind = program.puts[put]
    words = Counter[tuple[bool, str]]()
    for leak in perf.trace(mutant, "report")["leaks"]:
        if program.family(leak["type"]) == kind and leak["id"] not in known:
            first = leak["unpaired"][0]
            slots = program.slots.get_slots(kind, calls(first["stack"]), first["stack"] == callers(leak))
            words[program.slots.put_slot(kind, (place,)) in slots, first["confidence"]] += leak["count"]
    right = sum(count for (is_right, _), count in words.items() if is_right)
    assert words.total() > 100 and right >= 0.97 * words.total(), words
    assert words[False, "strong"] <= 0.01 * words.total(), words


def test_the_get_that_is_made_twice_is_named(perf: TracedPerf, tmp_path: Path) -> None:
    caller, get, place = GET_TWICE
    program, original, mutant = Perf(), read_code(Perf()), tmp_path / "perf"
    write_doubled(original, call_in(original, caller, get), mutant, one_in_four=False)
    named = Counter[bool]()
    for leak in perf.trace(mutant, "report")["leaks"]:
        gets = {program.slots.unwrapped(calls(one["stack"]))[0]: one["count"] for one in leak["gets"]}
        if program.family(leak["type"]) == "map" and place in gets:
            assert gets[place] % (2 * leak["count"]) == 0, "both calls have one stack"
            named[program.slots.unwrapped(calls(leak["unpaired"][0]["stack"]))[0] == place] += leak["count"]
    assert named.total() > 100 and named[False] <= 0.03 * named.total(), named


def test_the_put_that_is_made_twice_is_named(perf: TracedPerf, tmp_path: Path) -> None:
    caller, put, place = PUT_TWICE
    program, original, mutant = Perf(), read_code(Perf()), tmp_path / "perf"
    write_doubled(original, call_in(original, caller, put), mutant, one_in_four=False)
    errors = [error for error in perf.trace(mutant, "report")["errors"] if error["kind"] == "over-put"]
    said = [calls(error["probably"]) for error in errors if error["probably"]]  # of the first few objects it is kept
    assert said and {program.slots.unwrapped(stack)[0] for stack in said} == {place}
