"""What a walk in user space may change of a stack that the kernel side has cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.mishaps import Mishaps
from tracer.model import records
from tracer.model.records import FRAME_BINARY_SHIFT, FRAME_EXACT, StackStatus
from tracer.model.snapshot import Mapping, Stack
from tracer.procfs.maps import MapsEntry
from tracer.unwinding import stack_completion
from tracer.unwinding.dwarf_unwinder import Walked
from tracer.unwinding.stack_completion import StackCompletion

SPACE, NUMBER, FILE, BIAS = (10, 1), 0xDFFF, 3, 0x7000
NOWHERE, IN_FILE = NUMBER << FRAME_BINARY_SHIFT, FILE << FRAME_BINARY_SHIFT


@pytest.fixture
def completion() -> StackCompletion:
    mapping = Mapping(*SPACE, 0x8000, 0x9000, 0, FILE, True, 0)
    spaces: Any = SimpleNamespace(
        owner_of={NUMBER: SPACE}, executable=lambda _: [(mapping, SimpleNamespace(id=FILE), BIAS)],
        as_last_read=lambda _: [],
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


def test_a_copy_is_walked_by_the_mappings_that_it_came_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened to the process since is handled before the walk."""
    known: list[Any] = [(Mapping(*SPACE, 0x8000, 0x9000, 0, FILE, True, 0), SimpleNamespace(id=FILE), BIAS)]
    spaces: Any = SimpleNamespace(owner_of={}, executable=lambda _: known, anonymous_id=lambda _: NUMBER)
    asked: list[Any] = []

    class Walk:
        def __init__(self, dump: Any, find: Any, index_of: Any, anonymous: int) -> None:
            self._find = find

        def run(self) -> Walked:
            asked.append(self._find(0x8100))
            return Walked(Stack((IN_FILE | 0x1100, IN_FILE | 5)), (0, 16))

    monkeypatch.setattr(stack_completion, "DwarfUnwinder", Walk)
    maps: Any = None
    completion = StackCompletion(maps, spaces, lambda _: ())
    dump = np.zeros(1, records.STACK_DUMP)
    dump["id"], dump["pid"], dump["generation"] = 77, *SPACE
    completion.add([dump.tobytes()])
    known = []
    completion.walk(Mishaps())
    assert [found[1] for found in asked] == [BIAS]
    cut = Stack((IN_FILE | 0x1100,), StackStatus.UNSUPPORTED)
    assert completion.completed(77, cut) == Stack((IN_FILE | 0x1100, IN_FILE | 5))
    assert completion.places == {77: (0, 16)}
    assert completion.completed(77, cut) == cut  # each dump is of one stack


def test_copies_that_lead_no_further_are_no_longer_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    spaces: Any = SimpleNamespace(owner_of={}, executable=lambda _: [], anonymous_id=lambda _: NUMBER)
    maps: Any = SimpleNamespace(fds={"DUMPS": 5})
    completion = StackCompletion(maps, spaces, lambda _: ())

    def note(fd: int, key: bytes, value: bytes) -> None:
        told.append((int.from_bytes(key, "little"), int.from_bytes(value, "little")))

    monkeypatch.setattr(stack_completion.bpf, "update_element", note)
    cut = Stack((IN_FILE | 1,), StackStatus.UNSUPPORTED)
    for number in range(1, 6):
        completion._walked[number] = 9, Walked(cut, (0,))
        assert completion.completed(number, cut) == cut
    assert told == [(9, records.DUMPS_FUTILE)]


def test_what_was_known_of_a_process_that_has_ended_still_holds(completion: StackCompletion) -> None:
    known = completion._spaces.executable(SPACE)
    code = stack_completion._Code(completion, SPACE)
    completion._spaces.executable = lambda _: []  # type: ignore[method-assign]
    assert code.find(0x5000) is None
    found = code.find(0x8100)
    assert found is not None and found == known[0][1:]


ENTRY = MapsEntry(0x1000, 0x2000, False, True, 0, "00:00", 0, "")
OWN_CODE = ENTRY._replace(start=0x5000, end=0x6000, executable=True)


@pytest.mark.parametrize(
    ("entries", "address", "is_kept"),
    [
        ([ENTRY._replace(path="[stack]")], 0x1100, False),
        ([ENTRY._replace(path="/bin/x", inode=3)], 0x1100, False),
        ([ENTRY], 0x1100, False),
        ([ENTRY, OWN_CODE], 0x1100, True),  # a JIT may be writing to it
        ([ENTRY._replace(path="[anon:jit]"), OWN_CODE], 0x1100, True),
        ([ENTRY._replace(path="[heap]"), OWN_CODE], 0x1100, False),
        ([ENTRY, OWN_CODE], 0x5100, True),
        ([ENTRY], 0x3100, True),  # nothing is known to be there
        ((), 0x1100, True),  # it has ended
        ((), 0x1, False),
    ],
)
def test_an_address_on_a_stack_or_in_data_ends_a_walk(
    completion: StackCompletion, entries: list[MapsEntry], address: int, is_kept: bool
) -> None:
    """Such as routines leave that switch stacks: those of cgo, swapcontext."""
    completion._look_again = lambda _: entries
    stack = Stack((IN_FILE | 1, NOWHERE | address), StackStatus.NO_TABLE)
    expected = stack if is_kept else Stack((IN_FILE | 1,), StackStatus.NO_TABLE)
    assert completion.completed(1, stack) == expected
    whole = Stack(stack.frames, StackStatus.COMPLETE)
    assert completion.completed(2, whole) == whole
