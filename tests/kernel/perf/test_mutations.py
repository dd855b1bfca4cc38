"""perf with one put taken out: the get that it answered is the first that the report accuses."""

from __future__ import annotations

import configparser
import subprocess
from collections.abc import Sequence

import pytest
from traced_perf import BUILD, EXAMPLE, Json, TracedPerf, built


def read_mutations() -> configparser.ConfigParser:
    found = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    found.read(EXAMPLE / "mutations.txt")
    return found


MUTATIONS = read_mutations()


def passes_through(stack: Sequence[Json], functions: Sequence[str]) -> bool:
    """Tell whether a stack holds these functions in this order, leaf first; inlined frames count."""
    names = iter(frame["function"] for frame in stack)
    return all(any(name == wanted for name in names) for wanted in functions)


@pytest.mark.parametrize("name", MUTATIONS.sections())
def test_the_get_without_its_put_is_named_first(name: str, perf: TracedPerf) -> None:
    built("perf-unmodified")
    mutation = MUTATIONS[name]
    subprocess.run([str(EXAMPLE / "mutate.sh"), name], check=True, capture_output=True, timeout=600)
    report = perf.trace(BUILD / "mutants" / name, mutation["command"], "--spec", str(perf.spec))
    leak = next(leak for leak in report["leaks"] if leak["type"] == mutation["class"])
    first = leak["unpaired"][0]
    expected = [one.split() for one in mutation["expected"].split("|")]
    assert any(passes_through(first["stack"], one) for one in expected), first
