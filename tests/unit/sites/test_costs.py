"""Which instructions are cheap under a probe."""

from __future__ import annotations

import pytest

from tracer.architecture.instruction import InstructionClass
from tracer.architecture.x86_64.instruction_classes import NOP10, classify, is_refused
from tracer.sites.costs import Cost, CostModel, default_costs, measured_costs

CLASSES = {
    "0f1f440000": InstructionClass.NOP5,
    "660f1f0400": InstructionClass.NOP5,
    "662e0f1f840000000000": InstructionClass.NOP10,
    "660f1f840000000000": InstructionClass.OTHER,
    "90": InstructionClass.NOP,
    "55": InstructionClass.PUSH,
    "4157": InstructionClass.PUSH,
    "e800000000": InstructionClass.CALL,
    "eb10": InstructionClass.JUMP,
    "e900000000": InstructionClass.JUMP,
    "7410": InstructionClass.BRANCH,
    "0f8400000000": InstructionClass.BRANCH,
    "0f1f0400": InstructionClass.OTHER,
    "4055": InstructionClass.OTHER,
    "6a01": InstructionClass.OTHER,
    "ff742408": InstructionClass.OTHER,
    "6690": InstructionClass.OTHER,
    "f30f1efa": InstructionClass.OTHER,
    "c3": InstructionClass.OTHER,
    "ffe0": InstructionClass.OTHER,
    "e310": InstructionClass.OTHER,
    "f2e900000000": InstructionClass.OTHER,
}


@pytest.mark.parametrize("raw", CLASSES)
def test_classes_follow_the_kernel(raw: str) -> None:
    assert classify(bytes.fromhex(raw)) is CLASSES[raw]


def test_refused_prefixes() -> None:
    assert [is_refused(bytes.fromhex(raw)) for raw in ("f0ff07", "3effe0", "66f0ff07", "662e0f1f840000000000")] == [
        True, True, True, True,
    ]  # fmt: skip
    assert [is_refused(bytes.fromhex(raw)) for raw in ("f30f1efa", "4889fe", "64488b042528000000", "48b82e3e")] == [
        False, False, False, False,
    ]  # fmt: skip


def test_only_an_optimising_kernel_needs_no_trap() -> None:
    nop5 = bytes.fromhex("0f1f440000")
    assert default_costs(optimises_nop5=True).cost_of(nop5, 0) is Cost.CALL
    assert default_costs().cost_of(nop5, 0) is Cost.STEP
    assert default_costs().cost_of(b"\x55", 0) is Cost.TRAP


def test_the_10_byte_nop_is_refused_where_it_was_not_measured() -> None:
    taken = CostModel({InstructionClass.NOP10: Cost.CALL})
    assert default_costs(optimises_nop5=True).refuses(NOP10)
    assert not taken.refuses(NOP10)
    assert taken.refuses(bytes.fromhex("f0ff07"))
    assert taken.refuses(bytes.fromhex("2e0f1f840000000000"))
    assert (taken.cost_of(NOP10, 4096 - 10), taken.cost_of(NOP10, 4096 - 9)) == (Cost.CALL, Cost.TRAP)


@pytest.mark.parametrize(("nop10", "cost"), [(221, Cost.CALL), (455, Cost.TRAP), (16_500, Cost.STEP)])
def test_the_10_byte_nop_is_judged_like_the_other(nop10: float, cost: Cost) -> None:
    times = dict.fromkeys(InstructionClass, 460.0) | {InstructionClass.OTHER: 17_000.0, InstructionClass.NOP10: nop10}
    model = measured_costs(times)
    assert (model.costs[InstructionClass.NOP10], model.costs[InstructionClass.NOP5]) == (cost, Cost.TRAP)


@pytest.mark.parametrize(("nop5", "cost"), [(221, Cost.CALL), (455, Cost.TRAP), (16_500, Cost.STEP)])
def test_measured_times_are_judged_by_their_ratios(nop5: float, cost: Cost) -> None:
    times = dict.fromkeys(InstructionClass, 460.0) | {
        InstructionClass.OTHER: 17_000.0,
        InstructionClass.CALL: 16_900.0,
        InstructionClass.NOP5: nop5,
    }
    model = measured_costs(times)
    assert model.costs[InstructionClass.NOP5] is cost
    assert model.costs[InstructionClass.CALL] is Cost.STEP
    assert model.costs[InstructionClass.PUSH] is Cost.TRAP


def test_measured_times_without_a_difference_are_all_steps() -> None:
    assert set(measured_costs(dict.fromkeys(InstructionClass, 900.0)).costs.values()) == {Cost.STEP}


def test_what_children_would_not_survive_is_forbidden() -> None:
    times = dict.fromkeys(InstructionClass, 460.0) | {InstructionClass.OTHER: 17_000.0}
    model = measured_costs(times | {InstructionClass.NOP5: float("inf")})
    assert (model.refuses(bytes.fromhex("0f1f440000")), model.refuses(NOP10)) == (True, False)
    assert InstructionClass.NOP5 not in model.costs
