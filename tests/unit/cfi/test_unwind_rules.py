from __future__ import annotations

import pytest

from tracer.cfi.rows import UNREADABLE, State
from tracer.cfi.unwind_rules import Rule, distinct_rules, rule_of
from tracer.model.records import RULE, RULES, RuleKind

ENTRY = State(7, 8, "same", -8, "same")
UNSUPPORTED = Rule(RuleKind.UNSUPPORTED)
PLT = bytes.fromhex("7708 8000 3f 1a 3b 2a 33 24 22")
SIGNAL = State(b"\x77\xa0\x01\x06", 0, b"\x77\xf8\x00", b"\x77\xa8\x01", b"\x77\xa0\x01")


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (ENTRY, Rule(RuleKind.STACK_POINTER, 0, 0, 8)),
        (ENTRY._replace(offset=4096, fp=-16), Rule(RuleKind.STACK_POINTER, 1, -16, 4096)),
        (State(6, 16, -16, -8, "same"), Rule(RuleKind.FRAME_POINTER, 1, -16, 16)),
        (State(6, 16, "same", -8, "same"), Rule(RuleKind.FRAME_POINTER, 0, 0, 16)),
        (ENTRY._replace(register=PLT), Rule(RuleKind.PLT, 0, 0, 11)),
        (ENTRY._replace(register=PLT.replace(b"\x3b", b"\x3a")), Rule(RuleKind.PLT, 0, 0, 10)),
        (ENTRY._replace(return_address="undefined"), Rule(RuleKind.END)),
        (State(3, 0, "elsewhere", "undefined", "same"), Rule(RuleKind.END)),
        (ENTRY._replace(register=b"\x77\x38\x06\x23\x08"), Rule(RuleKind.DEREFERENCE, 0, 8, 56)),
        (ENTRY._replace(register=b"\x77\x78\x06\x23\x08"), Rule(RuleKind.DEREFERENCE, 0, 8, -8)),
        (ENTRY._replace(register=b"\x77\xa0\x01\x06"), Rule(RuleKind.DEREFERENCE, 0, 0, 160)),
        (State(b"\x76\x78\x06", 0, b"\x76\x00", -8, "same"), Rule(RuleKind.REALIGNED, 0, 0, -8)),
        (State(b"\x76\xb8\x7f\x06", 0, b"\x76\x10", -8, "same"), Rule(RuleKind.REALIGNED, 0, 16, -72)),
    ],
)
def test_what_the_unwinder_can_follow(state: State, rule: Rule) -> None:
    assert rule_of(state, signal=False) == rule


@pytest.mark.parametrize(
    "state",
    [
        UNREADABLE,
        State(10, 0, "same", -8, "same"),  # CFA in r10, before a stack is realigned
        State(b"\x76\x78\x06", 0, "same", -8, "same"),  # *(rbp-8), where it is
        State(b"\x76\x78\x06", 0, -16, -8, "same"),
        State(b"\x76\x78\x06", 0, b"\x77\x00", -8, "same"),
        State(b"\x76\x78\x06", 0, b"\x76\x00\x06", -8, "same"),
        State(b"\x76\x78\x06\x06", 0, b"\x76\x00", -8, "same"),
        State(b"\x76\x78", 0, b"\x76\x00", -8, "same"),
        State(b"\x76\x06", 0, b"\x76\x00", -8, "same"),
        State(b"\x76\x78\x06", 0, b"\x76", -8, "same"),
        State(b"\x76\x78\x06", 0, b"", -8, "same"),
        State(b"\x77\x78\x06", 0, b"\x76\x00", -8, "same"),
        State(b"\x76\x78\x06", 0, b"\x76\x80\x80\x02", -8, "same"),  # at rbp + 32768
        ENTRY._replace(return_address="same"),
        ENTRY._replace(return_address="elsewhere"),
        ENTRY._replace(return_address=-16),
        ENTRY._replace(sp="elsewhere"),
        ENTRY._replace(register=b""),
        ENTRY._replace(register=b"\x77"),
        ENTRY._replace(register=b"\x77\x08\x06\x23"),
        ENTRY._replace(register=b"\x77\x08\x06\x23\x08\x06"),
        ENTRY._replace(register=b"\x77\x08\x06\x23\x80\x80\x02"),  # + 32768
        ENTRY._replace(register=PLT + b"\x00"),
        ENTRY._replace(register=PLT.replace(b"\x33", b"\x32")),
        ENTRY._replace(register=PLT.replace(b"\x3b", b"\x40")),
        ENTRY._replace(offset=1 << 31),
        ENTRY._replace(fp=-32776),
    ],
)
def test_what_it_cannot_follow_is_unsupported(state: State) -> None:
    assert rule_of(state, signal=False) == UNSUPPORTED


@pytest.mark.parametrize("rbp", ["undefined", "elsewhere", b"\x76\x00", -32776])
@pytest.mark.parametrize("register", [6, 7])
def test_a_lost_rbp_is_never_taken_for_an_unchanged_one(register: int, rbp: int | bytes | str) -> None:
    state = State(register, 16, rbp, -8, "same")  # type: ignore[arg-type]
    assert rule_of(state, signal=False) == UNSUPPORTED


@pytest.mark.parametrize("expression", [PLT, b"\x77\x38\x06\x23\x08"])
def test_an_expression_leaves_no_room_for_a_saved_rbp(expression: bytes) -> None:
    assert rule_of(State(expression, 0, -24, -8, "same"), signal=False) == UNSUPPORTED


def test_only_the_ucontext_of_linux_is_a_signal_frame() -> None:
    assert rule_of(SIGNAL, signal=True) == Rule(RuleKind.SIGNAL)
    assert rule_of(SIGNAL, signal=False) == UNSUPPORTED
    assert rule_of(SIGNAL._replace(fp=b"\x77\xf0\x00"), signal=True) == UNSUPPORTED
    assert rule_of(SIGNAL._replace(return_address=-8), signal=True) == UNSUPPORTED
    assert rule_of(ENTRY, signal=True) == UNSUPPORTED


def test_rules_are_shared_and_the_first_is_none() -> None:
    states = [(ENTRY, False), (ENTRY._replace(offset=16), False), (ENTRY, False), (UNREADABLE, False)]
    rules, indexes = distinct_rules(states)
    assert rules.dtype == RULE
    assert rules.tolist() == [(0, 0, 0, 0), (7, 0, 0, 0), (1, 0, 0, 8), (1, 0, 0, 16)]
    assert indexes.tolist() == [2, 3, 2, 1]


def test_more_rules_than_the_map_holds_are_unsupported() -> None:
    rules, indexes = distinct_rules([(ENTRY._replace(offset=8 * i), False) for i in range(RULES + 10)])
    assert len(rules) == RULES
    assert indexes[: RULES - 2].tolist() == list(range(2, RULES))
    assert indexes[RULES - 2 :].tolist() == [1] * 12
