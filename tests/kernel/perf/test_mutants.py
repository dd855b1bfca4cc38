"""perf with stubs and one call of a put left out: the get or create that it would have answered is named first."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import CHECKOUT
from traced_perf import Json, TracedPerf, built
from traced_report import callers

sys.path.append(str(CHECKOUT / "examples" / "mutants"))

from call_sites import read_code, write_mutant
from perf_program import Perf
from program import Calls

# The function whose code has the call, the put, and the line of the source that asks for it.
LEFT_OUT = [
    ("maps__clone", "map__put", ("maps__clone", 342)),
    ("maps__put", "map__put", ("__maps__purge", 100)),
    ("thread__delete", "maps__put", ("thread__delete", 92)),
]


def calls(stack: list[Json]) -> Calls:
    return tuple(((frame["function"] or "?").split(".")[0], frame["line"] or 0) for frame in stack)


@pytest.mark.parametrize(("caller", "put", "place"), LEFT_OUT, ids=[place[0] for _, _, place in LEFT_OUT])
def test_the_reference_without_its_put_is_named(
    caller: str, put: str, place: tuple[str, int], perf: TracedPerf, tmp_path: Path
) -> None:
    program = Perf()
    original = read_code(program)
    (address,) = (
        one for one, callee in original.calls.items() if callee == put and original.function(one) == caller
    )
    mutant = tmp_path / "perf"
    write_mutant(original, address, mutant, one_in_four=False)
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
