"""What was lost may have been the end of what seems to be alive: forced losses never make leaks."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hand_made import Code, blocks, events, mapped, objects, snapshot

from tracer.analysis import analyse, has_findings
from tracer.capture.losses import _WORDS, describe
from tracer.mishaps import Mishaps
from tracer.model.findings import Findings
from tracer.model.operations import Operation
from tracer.model.records import LossKind
from tracer.model.snapshot import EVERY_KIND, Loss
from tracer.report.text import write_text
from tracer.report.text_options import TextOptions

HIDES = {
    LossKind.LIVE_FULL: "", LossKind.STACKS_FULL: "", LossKind.TOTALS_FULL: "", LossKind.TYPES_FULL: "",
    LossKind.INTERPRETERS_FULL: "", LossKind.OBJECTS_FULL: "reference", LossKind.PENDING_STALE: "reference",
    LossKind.EVENTS_FULL: "mapping", LossKind.PENDING_FULL: "reference allocation",
    LossKind.ARGUMENT_UNREAD: "reference allocation", LossKind.DEEP_BOUND: "allocation",
    LossKind.GHOSTS_FULL: "allocation", LossKind.SPACE_TOTALS_FULL: "", LossKind.INHERITED_FULL: "",
}  # fmt: skip
"""The rest hide the ends of all kinds."""


def judged(*losses: Loss, mode: str = "launched") -> Findings:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:3"))
    created = events({"operation": Operation.CREATE, "address": 0x90, "object": 0x90, "stack": stack, "serial": 7})
    made = snapshot(
        code, allocations=blocks({"address": 1, "size": 8, "stack": stack}),
        mapped=mapped({"start": 0x1000, "length": 0x1000, "stack": stack}),
        objects=objects({"address": 0x90, "object": 0x90, "stack": stack, "serial": 7}), history=created,
    )  # fmt: skip
    return analyse(replace(made, losses=losses, mode=mode), code.symbols)


def states(found: Findings) -> dict[str, str]:
    return {leak.kind: leak.state for leak in found.leaks}


def test_without_a_loss_all_leaked() -> None:
    found = judged()
    assert states(found) == dict.fromkeys(EVERY_KIND, "leaked")
    assert found.coverage_gaps == ()


@pytest.mark.parametrize("kind", LossKind)
def test_each_loss_hides_what_it_may(kind: LossKind) -> None:
    (loss,) = describe({kind: 3})
    hidden = HIDES.get(kind, " ".join(EVERY_KIND)).split()
    found = judged(loss)
    assert states(found) == {k: "outstanding" if k in hidden else "leaked" for k in EVERY_KIND}
    assert not found.complete
    assert has_findings(found) is (len(hidden) < len(EVERY_KIND))
    said = f"what seems to be alive may have been freed unseen, so it is not called a leak (3 lost: {loss.reason})"
    assert found.coverage_gaps == ((said,) if hidden else ())


def test_every_kind_of_loss_is_in_the_table() -> None:
    assert set(_WORDS) == set(LossKind)


def test_what_could_not_be_understood_hides_all() -> None:
    mishaps = Mishaps()
    with mishaps.attempt():
        raise OverflowError
    assert set(states(judged(*mishaps.losses)).values()) == {"outstanding"}


def test_the_verdict_is_no_leak() -> None:
    stream = io.StringIO()
    write_text(judged(*describe({LossKind.THREADS_FULL: 885})), stream, TextOptions(width=200))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("refleak: outstanding, not judged: ")
    assert lines[0].endswith("but data were lost")
    assert "885 lost: event of one thread too many" in lines[1]


def test_nothing_is_said_where_nothing_is_judged() -> None:
    assert judged(*describe({LossKind.THREADS_FULL: 1}), mode="attached").coverage_gaps == ()
