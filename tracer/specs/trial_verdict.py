"""Trial verdicts: what a run says of each function of a discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.late_dataclasses import dataclass
from tracer.model.operations import Operation
from tracer.model.trial import FunctionTrial, Trial
from tracer.specs.discovery import Proposal

OPERATIONS = {
    "create": Operation.CREATE, "get": Operation.GET, "put": Operation.PUT, "delete": Operation.DELETE,
}  # fmt: skip


@dataclass(frozen=True)
class Remark:
    """What is said of a function, and whether the trial disproves it."""

    text: str
    disproved: bool = False


@dataclass(frozen=True)
class TypeVerdict:
    """Remarks by key of the spec and function as the spec writes it."""

    remarks: Mapping[tuple[str, str], Remark]
    disproved: str = ""
    """Why nothing of the type is left; empty where something is."""

    @property
    def is_tried(self) -> bool:
        """Whether one that makes and one that ends such an object were called."""
        makes, ends = (
            any(remark.text != _NOT_TRIED for (key, _), remark in self.remarks.items() if key in keys)
            for keys in (("create",), ("put", "delete"))
        )
        return makes and ends


_NOT_TRIED = "not tried"
Rows = Mapping[tuple[str, str], FunctionTrial]
"""By key of the spec and function."""


def judge_proposal(proposal: Proposal, trial: Trial) -> TypeVerdict:
    """Hold a proposal against a trial, whose command is taken to be right."""
    rows = {
        (key, text): trial.of(operation, text.partition("(")[0])
        for key, operation in OPERATIONS.items() for text in getattr(proposal, key + "s")
    }  # fmt: skip
    judged = _Type(rows)
    remarks = {}
    for (key, text), row in rows.items():
        if row.calls + row.after_zero == 0:
            remark = Remark(_NOT_TRIED)
        else:
            remark = judged.create(row) if key == "create" else judged.change(key, row)
        remarks[key, text] = Remark(remark.text, remark.disproved and not trial.losses)
    return TypeVerdict(remarks, _nothing_left(remarks))


class _Type:
    """All that a trial says of one type."""

    def __init__(self, rows: Rows) -> None:
        creates, ends = _of(rows, "create"), _of(rows, "put", "delete")
        made, put = sum(row.calls for row in creates), sum(row.calls - row.unknown for row in ends)
        ended = sum(row.ended for row in creates)
        passed_by = sum(row.freed + row.reinitialised for row in creates)
        self.strangers = sum(row.calls for row in ends) if made and not put else 0
        """Puts and deletes, if all were of objects that none of the creates had made."""
        self.false_gets = passed_by if any(row.calls for row in _of(rows, "get")) and put >= made > ended == 0 else 0
        """Objects that were put as often as there are objects, ended, and still seemed to be referred to."""

    def create(self, row: FunctionTrial) -> Remark:
        called = _calls(row)
        if self.false_gets:
            return Remark(called)
        if row.reinitialised:
            seen = f"{row.reinitialised:,} returned what was counted already"
            return Remark(f"{called}, {seen}: it looks up, or an end is missing", disproved=not row.ended)
        if row.freed:
            text = f"{called}, {row.freed:,} of the objects were freed without a put: an end is missing"
            return Remark(text, disproved=not row.ended)
        if row.alive >= row.calls and self.strangers:
            return Remark(f"{called}, and the puts ({self.strangers:,}) were all of other objects", disproved=True)
        if row.alive >= row.calls:
            return Remark(f"{called}, none of the objects was put: leaked, still in use, or no create")
        return Remark(called)

    def change(self, key: str, row: FunctionTrial) -> Remark:
        called = _calls(row)
        if key == "get" and self.false_gets:
            text = f"{called}, and {self.false_gets:,} objects ended that still had references: it takes none"
            return Remark(text, disproved=True)
        if row.after_zero:
            text = f"{called}, {row.after_zero:,} of objects that had ended: a get or a create is missing"
            return Remark(text, disproved=True)
        if row.while_counted:
            return Remark(f"{called}, {row.while_counted:,} while references were open", disproved=True)
        if self.strangers and key != "get":
            return Remark(f"{called}, none of an object that a create of this type made", disproved=True)
        if row.unknown:
            many = f"{row.unknown:,} " if row.unknown < row.calls else ""
            return Remark(f"{called}, {many}of objects whose create was not seen: a create is missing")
        return Remark(called)


def _of(rows: Rows, *keys: str) -> list[FunctionTrial]:
    return [row for (key, _), row in rows.items() if key in keys]


def _calls(row: FunctionTrial) -> str:
    calls = row.calls + row.after_zero
    return f"{calls:,} call{'s' * (calls != 1)}"


def _nothing_left(remarks: Mapping[tuple[str, str], Remark]) -> str:
    """Return why a type is of no use: all that makes its objects was disproved, or all that ends them."""
    for keys, what in ((("create",), "makes"), (("put", "delete"), "ends")):
        found = [remark for (key, _), remark in remarks.items() if key in keys]
        if found and all(remark.disproved for remark in found):
            return f"nothing is left that {what} such an object"
    return ""


def disproved(verdicts: Iterable[TypeVerdict]) -> int:
    """Return how many functions are commented out."""
    return sum(
        len(verdict.remarks) if verdict.disproved else sum(remark.disproved for remark in verdict.remarks.values())
        for verdict in verdicts
    )
