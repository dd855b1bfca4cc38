"""Methods that count, by mangled names and what their code is said to do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tracer.specs.methods import counted_classes

_ADDS = {"_ZN4Page3refEv": 8, "_ZN4Page5unrefEv": 8}


def _found(names: Mapping[str, int], sets: Mapping[str, int]) -> dict[str, tuple[int, tuple[str, ...], str]]:
    """`names`: where each function changes a count, -1: nowhere; `sets`: what constructors set it to."""
    functions = [*names, *sets]

    def adds(name: str, number: int) -> int | None:
        is_get = any(word in name for word in ("3ref", "6AddRef", "9incRefCnt"))
        return names.get(name) if (number > 0) == is_get and names.get(name, -1) >= 0 else None

    found = counted_classes(functions, adds, lambda name, _: sets.get(name))
    return {p.name: (p.counter.offset if p.counter else -1, p.creates, p.doubt) for p in found}


def test_a_class_with_its_constructors() -> None:
    sets = {"_ZN4PageC1Ei": 1, "_ZN4PageC2Ei": 1, "_ZN4PageC1ERKS_": 1, "_ZN4PageC2Ev": 0}
    creates = ("_ZN4PageC1ERKS_(object=arg0)", "_ZN4PageC2Ei(object=arg0)")
    assert _found(_ADDS, sets) == {"Page": (8, creates, "")}, "C1 where there is no C2 of it, and none that sets 0"


def test_a_class_without_one_is_in_doubt() -> None:
    [(_, creates, doubt)] = _found(_ADDS, {"_ZN4PageC2Ev": 0}).values()
    assert (creates, doubt[:14]) == ((), "no constructor")


def test_classes_in_namespaces_and_const_methods() -> None:
    names = {"_ZNK3net4Conn6AddRefEv": 16, "_ZNK3net4Conn7ReleaseEv": 16}
    assert set(_found(names, {"_ZN3net4ConnC2Ev": 1})) == {"net::Conn"}


@pytest.mark.parametrize(
    "names",
    [
        {"_ZN4Page3refEv": 8, "_ZN4Page5unrefEv": 12},  # two counts
        {"_ZN4Page3refEv": -1, "_ZN4Page5unrefEv": -1},  # they count elsewhere
        {"_ZN4Page3refEi": 8, "_ZN4Page5unrefEi": 8},  # by a number that is given
        {"_ZN4Page3refEv": 8, "_ZN4Font5unrefEv": 8},
        {"_ZN4PageIiE3refEv": 8, "_ZN4PageIiE5unrefEv": 8},  # a template
        {"_Z3refv": 8, "_Z5unrefv": 8, "_ZN3": 8, "_ZN99Page3refEv": 8, "_ZN4Page": 8, "_ZNSt3refEv": 8},
    ],
)
def test_what_is_no_such_class(names: Mapping[str, int]) -> None:
    assert _found(names, {"_ZN4PageC2Ev": 1}) == {}
