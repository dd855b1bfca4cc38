"""A few hundred damaged inputs of each kind; `make fuzz SECONDS=3600` tries more."""

from __future__ import annotations

import pytest
from fuzz_run import Failure, try_seeds
from fuzz_subjects import SUBJECTS, Subject

SEEDS = {"command-line": 80, "recording": 60, "json-report": 60, "dwarf": 100, "dwarf-4": 60, "compressed-dwarf": 60}
USUAL_SEEDS = 250
KEPT = (("spec", 1795422256992), ("recording", 1795422571569), ("json-report", 1795518563996))
"""Subjects and seeds that failed once."""


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_damaged_input_is_read_or_refused(subject: Subject) -> None:
    kept = [seed for name, seed in KEPT if name == subject.name]
    assert [str(failure) for failure in try_seeds(subject, [*range(SEEDS.get(subject.name, USUAL_SEEDS)), *kept])] == []


def test_a_failure_is_seen() -> None:
    def fails(data: bytes) -> None:
        raise OverflowError("too big")

    (failure,) = try_seeds(Subject("none", lambda seed: b"", fails), [7])
    assert failure == Failure("none", 7, failure.what)
    assert failure.what.startswith("OverflowError: too big (fuzz_run.py:")


def test_memory_is_limited() -> None:
    (failure,) = try_seeds(Subject("none", lambda seed: b"", lambda _: bytearray(2 << 30)), [1])
    assert failure.what.startswith("MemoryError")
