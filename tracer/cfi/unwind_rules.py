"""Unwind rules, the few forms that the kernel side knows of getting from a frame to its caller.

A form that it does not know, and one that would lose the frame pointer without saying so, is RuleKind.UNSUPPORTED: a
caller may find its own frame through it, and a stack that ends early is better than a wrong one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracer.architecture.current import ARCHITECTURE
from tracer.cfi.rows import FRAME_POINTER, STACK_POINTER, State
from tracer.dwarf import leb128
from tracer.model.records import RULE, RULES, RuleKind

_BREG = 0x70
_BREG_FP, _BREG_SP = _BREG + FRAME_POINTER, _BREG + STACK_POINTER
_DEREFERENCE, _PLUS = 0x06, 0x23
_LITERAL = 0x30
_PLT, _LIMIT_AT = ARCHITECTURE.plt_expression


class Rule(NamedTuple):
    """A `struct rule` of bpf/abi.h."""

    kind: RuleKind
    fp_saved: int = 0
    fp_offset: int = 0
    offset: int = 0


NONE = Rule(RuleKind.NONE)
UNSUPPORTED = Rule(RuleKind.UNSUPPORTED)


def rule_of(state: State, signal: bool) -> Rule:
    """Return the rule that does what `state` says, UNSUPPORTED where none does."""
    if state.return_address == "undefined":
        return Rule(RuleKind.END)
    if signal:
        registers = (state.register, state.fp, state.return_address)
        known = registers == ARCHITECTURE.signal_frame
        return Rule(RuleKind.SIGNAL) if known else UNSUPPORTED
    if state.return_address != -8 or state.sp != "same":
        return UNSUPPORTED
    if isinstance(state.register, bytes):
        if isinstance(state.fp, bytes):
            return _of_realigned(state.register, state.fp)
        return _of_expression(state.register) if state.fp == "same" else UNSUPPORTED
    if state.register not in (STACK_POINTER, FRAME_POINTER):
        return UNSUPPORTED
    kind = RuleKind.STACK_POINTER if state.register == STACK_POINTER else RuleKind.FRAME_POINTER
    if state.fp == "same":
        return _fitting(Rule(kind, 0, 0, state.offset))
    if isinstance(state.fp, int):
        return _fitting(Rule(kind, 1, state.fp, state.offset))
    return UNSUPPORTED


def _of_expression(expression: bytes) -> Rule:
    if len(expression) == len(_PLT) and 0 <= expression[_LIMIT_AT] - _LITERAL < 16:
        limit = expression[_LIMIT_AT] - _LITERAL
        if expression[:_LIMIT_AT] + bytes([_LITERAL]) + expression[_LIMIT_AT + 1 :] == _PLT:
            return Rule(RuleKind.PLT, 0, 0, limit)
    try:
        if expression[0] != _BREG_SP:
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


def _of_realigned(cfa: bytes, fp: bytes) -> Rule:
    """Return the rule of GCC's functions that align their stack: CFA = *(FP + a), with FP's old value at FP + b.

    (GCC, dwarf2cfi.cc: the "dynamic realign argument pointer", rules 16 to 20.)
    """
    try:
        if cfa[0] != _BREG_FP or fp[0] != _BREG_FP or cfa[-1] != _DEREFERENCE:
            return UNSUPPORTED
        offset, end = leb128.signed(cfa, 1)
        fp_offset, fp_end = leb128.signed(fp, 1)
    except (IndexError, ValueError):
        return UNSUPPORTED
    if end != len(cfa) - 1 or fp_end != len(fp):
        return UNSUPPORTED
    return _fitting(Rule(RuleKind.REALIGNED, 0, fp_offset, offset))


def _fitting(rule: Rule) -> Rule:
    fits = -(1 << 15) <= rule.fp_offset < 1 << 15 and -(1 << 31) <= rule.offset < 1 << 31
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
