"""Which freed holders lack a put."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import Code, snapshot

from tracer.model.missing_puts import MissingPuts
from tracer.model.snapshot import Records
from tracer.model.statistics import FREED_HOLDER, NEVER_PUT

LEFT, ENDED = 5, 0


def holders(code: Code, *rows: tuple[int, int, int, int]) -> MissingPuts:
    """Rows of serial, stack of the free, stack of the put and count."""
    table: Records = np.zeros(len(rows), FREED_HOLDER)
    for name, values in zip(("serial", "freed", "put", "count"), zip(*rows, strict=True), strict=True):
        table[name] = values
    return MissingPuts(snapshot(code, freed_holders=table))


@pytest.mark.parametrize(("freed", "put", "lacks"), [
    ("delete:9 main:2", "put:3 delete:8 main:2", False),
    ("free:1 delete:9 main:2", "put:3 clear:7 delete:8 main:2", False),
    ("delete:9 main:2", "put:3 main:1", False),
    ("delete:9 end:4 stop:5 main:2", "put:3 main:1", True),
    ("delete:9 main:2", "put:3 other:1 start:7", False),
    ("delete:9 end:4 stop:5 main:2", "put:3 other:1 start:7", True),
])  # fmt: skip
def test_a_put_by_a_call_near_to_the_free_goes_with_it(freed: str, put: str, lacks: bool) -> None:
    code, keys = Code(), dict[str, int]()

    def stack(number: int, calls: str) -> int:
        for call in calls.split():
            keys.setdefault(call, code.frame(call.partition(":")[0], f"a.c:{call.partition(':')[2]}"))
        return code.stack(number, *(keys[call] for call in calls.split()))

    found = holders(code, (LEFT, stack(1, freed), stack(2, put), 1), (LEFT, 1, int(NEVER_PUT), 1))
    assert found.lack_put().tolist() == [lacks, True]
    assert len(found.lost()) == 1 + lacks


def test_a_stack_that_was_lost_tells_of_no_missing_put() -> None:
    assert holders(Code(), (LEFT, 1, 2, 1)).lack_put().tolist() == [False]


def test_pointers_that_those_who_ended_well_did_not_put_either_are_no_references() -> None:
    code = Code()
    code.stack(1, code.frame("delete", "a.c:9"))
    never = int(NEVER_PUT)
    assert len(holders(code, (LEFT, 1, never, 1), (ENDED, 1, 1, 80), (ENDED, 1, never, 20)).lost()) == 1
    assert len(holders(code, (LEFT, 1, never, 1), (ENDED, 1, 1, 79), (ENDED, 1, never, 21)).lost()) == 0
