"""Code that a JIT tells of while its thread is held: what stacks have in it has the name of that time."""

from __future__ import annotations

import time
from typing import Any

from tracer.jit.beam_image import BeamFunction
from tracer.jit.code_logs import CodeLogs
from tracer.jit.followed_logs import FollowedLogs
from tracer.jit.seen_frames import SeenFrames
from tracer.mishaps import Mishaps
from tracer.model.addresses import Space
from tracer.model.records import FRAME_BINARY_SHIFT

SPACE: Space = (7, 1)
START, END = 0x7F0000001000, 0x7F0000002000


class Machine:
    """One space with code in no binary; its stacks wait until somebody reads them."""

    lowest_generated = 0

    def __init__(self, ids: int = 100) -> None:
        self.number, self.left = 1, ids
        self.born_ns = {1: time.monotonic_ns()}
        self.owner_of = {1: SPACE}
        self.last_read = time.monotonic_ns()
        self.waiting: list[int] = []
        unused: Any = self
        self.seen = SeenFrames(unused)
        self.logs = CodeLogs(unused, self.seen, self.read_stacks, Mishaps())
        followed = FollowedLogs(7, unused, None, time.monotonic_ns())
        self.logs._living[SPACE] = self.logs._all[SPACE] = followed

    def is_generated(self, _: int) -> bool:
        return True

    def anonymous_id(self, _: Space) -> int:
        return self.number

    def renumber(self, space: Space) -> bool:
        if not self.left:
            return False
        self.left -= 1
        self.number += 1
        self.born_ns[self.number], self.owner_of[self.number] = time.monotonic_ns(), space
        return True

    def call(self, address: int) -> int:
        """Have a stack go through an address; return the key of its frame."""
        key = self.number << FRAME_BINARY_SHIFT | address
        self.waiting.append(key)
        return key

    def read_stacks(self) -> None:
        now = time.monotonic_ns()
        self.seen.note(tuple(self.waiting), self.last_read, now)
        self.waiting, self.last_read = [], now

    def names(self) -> dict[int, str | None]:
        self.read_stacks()
        return {key: frame.function for key, frame in self.logs.frames()}


def loaded(name: str | None) -> list[BeamFunction]:
    return [BeamFunction(START, END, name, ())]


def test_what_follows_each_other_at_one_address() -> None:
    machine, keys = Machine(), {}
    for name in ("a:f/0", "b:g/1", "c:h/2"):
        machine.logs.tell(SPACE, loaded(name))
        keys[machine.call(START + 0x10)] = name
        machine.logs.tell(SPACE, loaded(None))
    assert machine.names() == keys


def test_what_is_registered_over_what_was_there() -> None:
    machine, keys = Machine(), {}
    for name in ("a:f/0", "b:g/1"):
        machine.logs.tell(SPACE, loaded(name))
        keys[machine.call(START + 0x10)] = name
    assert machine.names() == keys


def test_where_no_number_is_left_nobody_knows() -> None:
    machine = Machine(ids=0)
    machine.logs.tell(SPACE, loaded("a:f/0"))
    key = machine.call(START + 0x10)
    machine.logs.tell(SPACE, loaded("b:g/1"))
    machine.call(START + 0x10)
    assert machine.names() == {key: None}


def test_modules_beside_each_other_need_no_numbers() -> None:
    machine = Machine(ids=0)
    machine.logs.tell(SPACE, [BeamFunction(START + n * 64, START + n * 64 + 64, f"m:f/{n}", ()) for n in range(9)])
    keys = {machine.call(START + n * 64 + 8): f"m:f/{n}" for n in range(9)}
    assert machine.names() == keys
