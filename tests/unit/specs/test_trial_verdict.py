"""What a trial says of guessed functions, and how a spec shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tracer.model.operations import Operation
from tracer.model.trial import FunctionTrial, Trial
from tracer.specs.discovery import Proposal
from tracer.specs.files import parse_spec
from tracer.specs.toml_text import spec_text
from tracer.specs.trial_verdict import disproved, judge_proposal

CONN = Proposal("conn", ("conn_new", "conn_open(object=*arg0, fails=negative)"), ("conn_ref",), ("conn_unref",))
_OPERATIONS = {"conn_new": Operation.CREATE, "conn_open": Operation.CREATE, "conn_ref": Operation.GET,
               "conn_unref": Operation.PUT}  # fmt: skip


def trial(losses: tuple[str, ...] = (), **functions: dict[str, int]) -> Trial:
    rows: Any = {(_OPERATIONS[name], name): FunctionTrial(**row) for name, row in functions.items()}
    return Trial(("./prog",), 0, rows, losses)


def said(**functions: dict[str, int]) -> dict[str, tuple[str, bool]]:
    remarks = judge_proposal(CONN, trial(**functions)).remarks
    return {name.partition("(")[0]: (remark.text, remark.disproved) for (_, name), remark in remarks.items()}


def test_what_works_has_its_calls_and_the_rest_is_not_tried() -> None:
    assert said(conn_new={"calls": 1}, conn_unref={"calls": 1000}) == {
        "conn_new": ("1 call", False), "conn_open": ("not tried", False), "conn_ref": ("not tried", False),
        "conn_unref": ("1,000 calls", False),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("create", "put", "remark"),
    [
        ({"calls": 5, "reinitialised": 4, "alive": 1}, {},
         ("5 calls, 4 returned what was counted already: it looks up, or an end is missing", True)),
        ({"calls": 5, "reinitialised": 1}, {"calls": 4},
         ("5 calls, 1 returned what was counted already: it looks up, or an end is missing", False)),
        ({"calls": 3, "freed": 3}, {}, ("3 calls, 3 of the objects were freed without a put: an end is missing", True)),
        ({"calls": 3, "freed": 1}, {"calls": 2},
         ("3 calls, 1 of the objects were freed without a put: an end is missing", False)),
        ({"calls": 3, "alive": 3}, {"calls": 9, "unknown": 9},
         ("3 calls, and the puts (9) were all of other objects", True)),
        ({"calls": 3, "alive": 3}, {"calls": 9, "unknown": 8},
         ("3 calls, none of the objects was put: leaked, still in use, or no create", False)),
    ],
)  # fmt: skip
def test_creates(create: dict[str, int], put: dict[str, int], remark: tuple[str, bool]) -> None:
    assert said(conn_new=create, conn_unref=put)["conn_new"] == remark


def test_a_get_without_which_all_would_have_ended_takes_no_reference() -> None:
    found = said(conn_new={"calls": 7, "freed": 1, "reinitialised": 6}, conn_ref={"calls": 7}, conn_unref={"calls": 7})
    assert found["conn_ref"] == ("7 calls, and 7 objects ended that still had references: it takes none", True)
    assert found["conn_new"] == ("7 calls", False)


def test_a_put_of_what_has_ended() -> None:
    found = said(conn_new={"calls": 2}, conn_unref={"calls": 2, "after_zero": 3})
    assert found["conn_unref"] == ("5 calls, 3 of objects that had ended: a get or a create is missing", True)


def test_nothing_is_disproved_where_something_was_lost() -> None:
    rows = {"conn_new": {"calls": 5, "reinitialised": 4, "alive": 1}}
    verdict = judge_proposal(CONN, trial(("9 lost: ring full",), **rows))
    assert not any(remark.disproved for remark in verdict.remarks.values())


def test_the_text_is_a_spec_of_what_is_left() -> None:
    verdict = judge_proposal(CONN, trial(conn_new={"calls": 2, "freed": 2}, conn_unref={"calls": 1}))
    text = spec_text("libconn.so", "libconn.so*", [CONN], [verdict], "Tried with: ./prog")
    (left,) = parse_spec(text, "text", "text").types
    assert [function.spec.function for function in left.functions] == ["conn_open", "conn_ref", "conn_unref"]
    assert disproved([verdict]) == 1


def test_a_type_of_which_nothing_is_left_is_commented_out_as_a_whole() -> None:
    gone = judge_proposal(CONN, trial(conn_new={"calls": 1}, conn_unref={"calls": 1, "after_zero": 1}))
    kept = judge_proposal(CONN, trial())
    text = spec_text("libconn.so", "libconn.so*", [CONN, CONN], [gone, kept])
    assert [type_.name for type_ in parse_spec(text, "text", "text").types] == ["conn"]
    assert "# disproved: nothing is left that ends such an object" in text
    assert disproved([gone, kept]) == 4
