"""The costs of probes are measured on the running kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tracer.capture.instruction_costs import known_costs, measure_costs
from tracer.sites.costs import InstructionClass


def test_every_class_is_measured() -> None:
    measured = measure_costs()
    # The kernel may refuse the 10-byte nop, and nothing else.
    assert {InstructionClass(name) for name in measured} | {InstructionClass.NOP10} == set(InstructionClass)
    assert all(nanoseconds > 0 for nanoseconds in measured.values())


def test_the_answer_is_kept_and_a_damaged_one_replaced(private_folders: Callable[[], Path]) -> None:
    cache = private_folders()
    first = known_costs(cache)
    assert known_costs(cache) == first
    (kept,) = cache.iterdir()
    kept.write_text("{")
    assert set(known_costs(cache)) == set(first)
    assert kept.read_text() != "{"
