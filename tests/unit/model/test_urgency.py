"""The order in which entries come: what is lost before what only may be, what is held, and what an exec ended."""

from __future__ import annotations

import io
from dataclasses import replace

from hand_made import server

from tracer.analysis import analyse
from tracer.model.findings import ALIVE_AT_EXEC, LEAKED, LOST, POSSIBLE, REACHABLE, Findings, Leak
from tracer.model.frames import Frame
from tracer.model.urgency import urgency
from tracer.report import write_text

STACK = (Frame("make", "srv", "/usr/bin/srv"), Frame("main", "srv", "/usr/bin/srv"))


def block(size: int, state: str, reachability: str | None, pid: int = 812) -> Leak:
    return Leak(f"{size:012}", "allocation", "malloc", pid, state, 1, size, STACK, True, "complete",
                reachability=reachability)  # fmt: skip


LOST_BLOCK, MAY_BE, HELD = block(3, LEAKED, LOST), block(900, LEAKED, POSSIBLE), block(5000, LEAKED, REACHABLE)
ENDED = block(8192, ALIVE_AT_EXEC, LOST)


def with_leaks(*leaks: Leak) -> Findings:
    snapshot, code = server()
    return replace(analyse(snapshot, code.symbols), leaks=leaks, errors=())


def test_what_is_lost_is_the_most_urgent() -> None:
    assert sorted([ENDED, HELD, MAY_BE, LOST_BLOCK], key=urgency) == [LOST_BLOCK, MAY_BE, HELD, ENDED]


def test_a_reference_that_nobody_put_is_urgent_wherever_its_object_is() -> None:
    assert urgency(replace(HELD, kind="reference")) == 0


def test_blocks_of_whose_state_nothing_is_known_are_urgent() -> None:
    assert urgency(block(1, LEAKED, None)) == 0


def test_the_process_that_lost_something_comes_first() -> None:
    stream = io.StringIO()
    write_text(with_leaks(ENDED, replace(LOST_BLOCK, pid=813)), stream)
    said = stream.getvalue()
    assert said.index("---- pid 813") < said.index("#1  3 bytes lost") < said.index("---- pid 812")
