"""How to get from a frame to its caller: the few forms that the unwinder knows.

A form that it does not know, and one that would lose rbp without saying so, is RuleKind.UNSUPPORTED: a caller may
find its own frame through rbp, and a stack that ends early is better than a wrong one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracer.cfi.rows import RBP, RSP, State
from tracer.dwarf import leb128
from tracer.model.records import RULE, RULES, RuleKind

_BREG_RBP, _BREG_RSP, _DEREFERENCE, _PLUS = 0x76, 0x77, 0x06, 0x23
_LITERAL = 0x30
_PLT = bytes.fromhex("7708 8000 3f 1a 30 2a 33 24 22")
"""rsp + 8 + ((rip & 15) >= N) << 3: the linker's expression for .plt, N in byte 6 (binutils, elfxx-x86)."""
_SIGNAL_CFA = bytes.fromhex("77a001 06")
_SIGNAL_RBP = bytes.fromhex("77f800")
_SIGNAL_RETURN = bytes.fromhex("77a801")
"""Registers 15, 10 and 16 of the ucontext at rsp (glibc, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c)."""


class Rule(NamedTuple):
    """A `struct rule` of bpf/abi.h."""

    kind: RuleKind
    rbp_saved: int = 0
    rbp_offset: int = 0
    offset: int = 0


NONE = Rule(RuleKind.NONE)
UNSUPPORTED = Rule(RuleKind.UNSUPPORTED)


def rule_of(state: State, signal: bool) -> Rule:
    """Return the rule that does what `state` says, UNSUPPORTED where none does."""
    if state.return_address == "undefined":
        return Rule(RuleKind.END)
    if signal:
        registers = (state.register, state.rbp, state.return_address)
        known = registers == (_SIGNAL_CFA, _SIGNAL_RBP, _SIGNAL_RETURN)
        return Rule(RuleKind.SIGNAL) if known else UNSUPPORTED
    if state.return_address != -8 or state.rsp != "same":
        return UNSUPPORTED
    if isinstance(state.register, bytes):
        if isinstance(state.rbp, bytes):
            return _of_realigned(state.register, state.rbp)
        return _of_expression(state.register) if state.rbp == "same" else UNSUPPORTED
    if state.register not in (RSP, RBP):
        return UNSUPPORTED
    kind = RuleKind.RSP if state.register == RSP else RuleKind.RBP
    if state.rbp == "same":
        return _fitting(Rule(kind, 0, 0, state.offset))
    if isinstance(state.rbp, int):
        return _fitting(Rule(kind, 1, state.rbp, state.offset))
    return UNSUPPORTED


def _of_expression(expression: bytes) -> Rule:
    if len(expression) == len(_PLT) and 0 <= expression[6] - _LITERAL < 16:
        limit = expression[6] - _LITERAL
        if expression[:6] + bytes([_LITERAL]) + expression[7:] == _PLT:
            return Rule(RuleKind.PLT, 0, 0, limit)
    try:
        if expression[0] != _BREG_RSP:
            return UNSUPPORTED
        offset, at = leb128.signed(expression, 1)
        if expression[at] != _DEREFERENCE:
            return UNSUPPORTED
        added, at = 0, at + 1
        if at < len(expression) and expression[at] == _PLUS:
            added, at = leb128.unsigned(expression, at + 1)
    except (IndexError, ValueError):
        return UNSUPPORTED
    return _fitting(Rule(RuleKind.DEREFERENCE, 0, added, offset)) if at == len(expression) else UNSUPPORTED


def _of_realigned(cfa: bytes, rbp: bytes) -> Rule:
    """Return the rule of GCC's functions that align their stack: CFA = *(rbp + a), with rbp's old value at rbp + b.

    (GCC, dwarf2cfi.cc: the "dynamic realign argument pointer", rules 16 to 20.)
    """
    try:
        if cfa[0] != _BREG_RBP or rbp[0] != _BREG_RBP or cfa[-1] != _DEREFERENCE:
            return UNSUPPORTED
        offset, end = leb128.signed(cfa, 1)
        rbp_offset, rbp_end = leb128.signed(rbp, 1)
    except (IndexError, ValueError):
        return UNSUPPORTED
    if end != len(cfa) - 1 or rbp_end != len(rbp):
        return UNSUPPORTED
    return _fitting(Rule(RuleKind.REALIGNED, 0, rbp_offset, offset))


def _fitting(rule: Rule) -> Rule:
    fits = -(1 << 15) <= rule.rbp_offset < 1 << 15 and -(1 << 31) <= rule.offset < 1 << 31
    return rule if fits else UNSUPPORTED


def distinct_rules(states: list[tuple[State, bool]]) -> tuple[NDArray[np.void], NDArray[np.uint32]]:
    """Return the distinct rules of `states` (dtype RULE, the first is NONE) and each state's index into them.

    There are at most RULES; what comes after them is UNSUPPORTED.
    """
    numbers = {NONE: 0, UNSUPPORTED: 1}
    indexes = np.empty(len(states), np.uint32)
    for i, (state, signal) in enumerate(states):
        rule = rule_of(state, signal)
        if len(numbers) == RULES and rule not in numbers:
            rule = UNSUPPORTED
        indexes[i] = numbers.setdefault(rule, len(numbers))
    return np.array(list(numbers), RULE), indexes
