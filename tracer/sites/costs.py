"""Costs of a probe by the instruction under it.

The kernel executes the probed instruction in one of three ways (arch/x86/kernel/uprobes.c:
branch_setup_xol_ops, push_setup_xol_ops, can_optimize): rewritten into a call, without any trap
(`call`); emulated in the breakpoint's handler (`trap`); single-stepped out of line (`step`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from math import isinf

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import InstructionClass
from tracer.late_dataclasses import dataclass

PAGE = 4096


class Cost(StrEnum):
    CALL = "call"
    TRAP = "trap"
    STEP = "step"


NANOSECONDS = {Cost.CALL: 223, Cost.TRAP: 470, Cost.STEP: 17_000}
"""Per hit, measured on Linux 6.18 in a virtual machine; used only to compare."""


LONG_NOPS = (InstructionClass.NOP5, InstructionClass.NOP10)
"""What one kernel or the other rewrites into a call."""


@dataclass(frozen=True)
class CostModel:
    """The cost of each class on the running kernel; a class that is not given is single-stepped."""

    costs: Mapping[InstructionClass, Cost]
    forbidden: Collection[InstructionClass] = frozenset()
    """Classes on which a probe would do harm."""

    def cost_of(self, raw: bytes, link_address: int) -> Cost:
        """Return the cost of a probe on the instruction `raw`; its address matters modulo the page size."""
        kind = ARCHITECTURE.classify(raw)
        cost = self.costs.get(kind, Cost.STEP)
        if cost is Cost.CALL and link_address % PAGE + len(raw) > PAGE:
            return Cost.TRAP  # the kernel rewrites no instruction that spans two pages
        return cost

    def refuses(self, raw: bytes) -> bool:
        """Tell whether no probe may stand on this instruction; the 10-byte nop only where it is not given."""
        kind = ARCHITECTURE.classify(raw)
        if kind in self.forbidden:
            return True
        is_given_nop = kind is InstructionClass.NOP10 and InstructionClass.NOP10 in self.costs
        return ARCHITECTURE.is_refused(raw) and not is_given_nop


def default_costs(optimises_nop5: bool = False) -> CostModel:
    """Return what every kernel since 5.15 does; with `optimises_nop5`, what 6.18 does with 5-byte nops."""
    trap = (
        InstructionClass.NOP,
        InstructionClass.PUSH,
        InstructionClass.CALL,
        InstructionClass.JUMP,
        InstructionClass.BRANCH,
    )
    costs = dict.fromkeys(trap, Cost.TRAP)
    if optimises_nop5:
        costs[InstructionClass.NOP5] = Cost.CALL
    return CostModel(costs)


def measured_costs(nanoseconds: Mapping[InstructionClass, float]) -> CostModel:
    """Return the costs that measured times per hit show, by ratios within the one measurement.

    `nanoseconds` must hold OTHER, which is single-stepped everywhere, and NOP; not a class that the kernel refuses.
    What takes infinitely long is forbidden.
    """
    step, trap = nanoseconds[InstructionClass.OTHER], nanoseconds[InstructionClass.NOP]
    forbidden = frozenset(kind for kind, time in nanoseconds.items() if isinf(time))
    costs = {kind: Cost.TRAP if time < 0.75 * step else Cost.STEP for kind, time in nanoseconds.items()}
    for nop in LONG_NOPS:
        if nanoseconds.get(nop, step) < 0.75 * min(trap, step):
            costs[nop] = Cost.CALL
    costs[InstructionClass.OTHER] = Cost.STEP
    return CostModel({kind: cost for kind, cost in costs.items() if kind not in forbidden}, forbidden)
