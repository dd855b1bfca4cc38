"""The costs of probes are measured on the running kernel."""

from __future__ import annotations

from pathlib import Path

from tracer.capture.instruction_costs import known_costs, measure_costs
from tracer.sites.costs import InstructionClass


def test_every_class_is_measured() -> None:
    measured = measure_costs()
    assert {InstructionClass(name) for name in measured} == set(InstructionClass)
    assert all(nanoseconds > 0 for nanoseconds in measured.values())


def test_the_answer_is_kept_and_a_damaged_one_replaced(tmp_path: Path) -> None:
    first = known_costs(tmp_path)
    assert known_costs(tmp_path) == first
    (kept,) = tmp_path.iterdir()
    kept.write_text("{")
    assert set(known_costs(tmp_path)) == set(first)
    assert kept.read_text() != "{"
