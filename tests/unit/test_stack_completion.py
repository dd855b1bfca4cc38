"""What a walk in user space may change of a stack that the kernel side has cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tracer.capture.stack_completion import StackCompletion
from tracer.model.records import FRAME_BINARY_SHIFT, FRAME_EXACT, StackStatus
from tracer.model.snapshot import Mapping, Stack

SPACE, NUMBER, FILE, BIAS = (10, 1), 0xDFFF, 3, 0x7000
NOWHERE, IN_FILE = NUMBER << FRAME_BINARY_SHIFT, FILE << FRAME_BINARY_SHIFT


@pytest.fixture
def completion() -> StackCompletion:
    mapping = Mapping(*SPACE, 0x8000, 0x9000, 0, FILE, True, 0)
    spaces: Any = SimpleNamespace(
        owner_of={NUMBER: SPACE}, executable=lambda _: [(mapping, SimpleNamespace(id=FILE), BIAS)]
    )
    maps: Any = None
    return StackCompletion(maps, spaces, lambda _: ())


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        ((IN_FILE | 1, IN_FILE | 2), (IN_FILE | 1,), True),
        ((IN_FILE | 1,), (IN_FILE | 1, IN_FILE | 2), False),
        ((IN_FILE | 1, IN_FILE | 2), (IN_FILE | 4, IN_FILE | 2), False),
        ((IN_FILE | 1, IN_FILE | 0x1100), (IN_FILE | 1, NOWHERE | 0x8100), True),  # it was mapped without a word
        ((IN_FILE | 1, IN_FILE | FRAME_EXACT | 0x1100), (IN_FILE | 1, NOWHERE | 0x8100), True),  # a restorer
        ((IN_FILE | 1, IN_FILE | 0x1200), (IN_FILE | 1, NOWHERE | 0x8100), False),
        ((IN_FILE | 1, IN_FILE | 0x1100), (IN_FILE | 1, NOWHERE | 0x5000), False),  # a frame was passed over
        ((IN_FILE | 1, NOWHERE | 0x5100), (IN_FILE | 1, NOWHERE | 0x5000), False),
    ],
)
def test_both_must_agree_but_for_files_that_were_not_known(
    completion: StackCompletion, ours: tuple[int, ...], theirs: tuple[int, ...], agree: bool
) -> None:
    walked, cut = Stack(ours, StackStatus.COMPLETE), Stack(theirs, StackStatus.NO_TABLE)
    assert completion._begins_as(walked, cut) is agree
