"""What a probe costs by the instruction under it.

The kernel executes the probed instruction in one of three ways (arch/x86/kernel/uprobes.c:
branch_setup_xol_ops, push_setup_xol_ops, can_optimize): rewritten into a call, without any trap
(`call`); emulated in the breakpoint's handler (`trap`); single-stepped out of line (`step`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PAGE = 4096
NOPS5 = (bytes.fromhex("0f1f440000"), bytes.fromhex("660f1f0400"))
NOP10 = bytes.fromhex("662e0f1f840000000000")
"""What newer kernels rewrite in place of 5-byte nops (commit 554ba38456da; Debian's 7.2.13); others refuse its 2e."""
# Prefixes that is_prefix_bad() refuses: es, cs, ss, ds (also `notrack`) and lock.
_REFUSED_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\xf0")
_PREFIXES = _REFUSED_PREFIXES | frozenset(b"\x64\x65\x66\x67\xf2\xf3")


class Cost(StrEnum):
    CALL = "call"
    TRAP = "trap"
    STEP = "step"


NANOSECONDS = {Cost.CALL: 223, Cost.TRAP: 470, Cost.STEP: 17_000}
"""Per hit, measured on Linux 6.18 in a virtual machine; used only to compare."""


class InstructionClass(StrEnum):
    """Instructions that the kernel treats alike."""

    NOP5 = "nop5"
    NOP10 = "nop10"
    NOP = "nop"
    PUSH = "push"
    CALL = "call"
    JUMP = "jump"
    BRANCH = "branch"
    OTHER = "other"


LONG_NOPS = (InstructionClass.NOP5, InstructionClass.NOP10)
"""What one kernel or the other rewrites into a call."""


@dataclass(frozen=True)
class CostModel:
    """The cost of each class on the running kernel; a class that is not given is single-stepped."""

    costs: Mapping[InstructionClass, Cost]

    def cost_of(self, raw: bytes, link_address: int) -> Cost:
        """Return the cost of a probe on the instruction `raw`; its address matters modulo the page size."""
        kind = classify(raw)
        cost = self.costs.get(kind, Cost.STEP)
        if cost is Cost.CALL and link_address % PAGE + len(raw) > PAGE:
            return Cost.TRAP  # the kernel rewrites no instruction that spans two pages
        return cost

    def refuses(self, raw: bytes) -> bool:
        """Tell whether the kernel refuses a probe on this instruction; the 10-byte nop only where it is not given."""
        return is_refused(raw) and not (raw == NOP10 and InstructionClass.NOP10 in self.costs)


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
    """
    step, trap = nanoseconds[InstructionClass.OTHER], nanoseconds[InstructionClass.NOP]
    costs = {kind: Cost.TRAP if time < 0.75 * step else Cost.STEP for kind, time in nanoseconds.items()}
    for nop in LONG_NOPS:
        if nanoseconds.get(nop, step) < 0.75 * min(trap, step):
            costs[nop] = Cost.CALL
    costs[InstructionClass.OTHER] = Cost.STEP
    return CostModel(costs)


def classify(raw: bytes) -> InstructionClass:
    """Return the class of one whole instruction by its bytes."""
    first, size = raw[0], len(raw)
    if raw in NOPS5:
        return InstructionClass.NOP5
    if raw == NOP10:
        return InstructionClass.NOP10
    if raw == b"\x90":
        return InstructionClass.NOP
    if (size == 1 and 0x50 <= first <= 0x57) or (size == 2 and first == 0x41 and 0x50 <= raw[1] <= 0x57):
        return InstructionClass.PUSH
    if first == 0xE8 and size == 5:
        return InstructionClass.CALL
    if (first == 0xE9 and size == 5) or (first == 0xEB and size == 2):
        return InstructionClass.JUMP
    if (0x70 <= first <= 0x7F and size == 2) or (first == 0x0F and size == 6 and 0x80 <= raw[1] <= 0x8F):
        return InstructionClass.BRANCH
    return InstructionClass.OTHER


def is_refused(raw: bytes) -> bool:
    """Tell whether kernels refuse a probe on this instruction because of its prefixes: all but for NOP10."""
    for byte in raw:
        if byte in _REFUSED_PREFIXES:
            return True
        if byte not in _PREFIXES:
            break
    return False
