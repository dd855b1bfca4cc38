"""A made-up program that counts references: makes the events and live objects that a trace of it would give."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hand_made import DSO, Code, snapshot

from tracer.aggregation.history import History
from tracer.model.events import EVENT, ErrorKind, EventFlag
from tracer.model.operations import Operation
from tracer.model.records import OBJECT_RECORD
from tracer.model.snapshot import Snapshot

CREATE, GET, PUT, DELETE = Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE


@dataclass
class Thing:
    address: int
    serial: int
    type: int
    born_ns: int
    stack: int
    tid: int
    initial: int
    count: int
    gets: int = 0
    puts: int = 0
    ended_at: int = 0


@dataclass
class Simulation:
    """Counts as the kernel side does. Stacks are named by their calls, "main:1 serve:7", the leaf last."""

    code: Code = field(default_factory=Code)
    events: list[tuple[int, ...]] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)
    time_ns: int = 0
    _stacks: dict[str, int] = field(default_factory=dict)
    _frames: dict[str, int] = field(default_factory=dict)

    def stack(self, calls: str) -> int:
        if calls not in self._stacks:
            keys = []
            for call in calls.split():
                function, _, line = call.partition(":")
                if call not in self._frames:
                    self._frames[call] = self.code.frame(function, f"{function.split('__')[0]}.c:{line or 1}")
                keys.append(self._frames[call])
            self._stacks[calls] = self.code.stack(len(self._stacks) + 1, *reversed(keys))
        return self._stacks[calls]

    def create(
        self, calls: str, count: int = 1, tid: int = 812, type_: int = DSO, memory_of: Thing | None = None
    ) -> Thing:
        """`memory_of`: one that had the memory before."""
        serial = len(self.things) + 1
        address = memory_of.address if memory_of else 0x10000 + 64 * serial
        thing = Thing(address, serial, type_, self.time_ns + 1, self.stack(calls), tid, count, count)
        self.things.append(thing)
        self._event(CREATE, thing, calls, tid, value=type_, count=count)
        return thing

    def get(self, thing: Thing, calls: str, tid: int = 812, holder: int = 0) -> None:
        thing.count += 1
        thing.gets += 1
        self._event(GET, thing, calls, tid, value=holder, count=thing.count)

    def get_after_end(self, thing: Thing, calls: str, tid: int = 812) -> None:
        self._error(thing, calls, tid, ErrorKind.USE_AFTER_ZERO)

    def put(self, thing: Thing, calls: str, tid: int = 812, holder: int = 0) -> None:
        if thing.count <= 0:
            self._error(thing, calls, tid, ErrorKind.OVER_PUT)
            return
        thing.count -= 1
        thing.puts += 1
        last = EventFlag.LAST if thing.count == 0 else 0
        thing.ended_at = self.stack(calls)
        self._event(PUT, thing, calls, tid, value=holder, count=thing.count, flags=last)

    def free_holder(self, thing: Thing, calls: str, made: str, offset: int, tid: int = 812) -> None:
        """Free a block of 64 bytes that was made there and has a pointer to the thing."""
        self._event(
            Operation.HOLDER_FREED, thing, calls, tid, value=self.stack(made), count_read=offset, count=64
        )  # fmt: skip

    def delete(self, thing: Thing, calls: str, tid: int = 812) -> None:
        thing.count = 0
        self._event(DELETE, thing, calls, tid, flags=EventFlag.LAST)

    def snapshot(self, **history: int) -> Snapshot:
        """Return what a trace of all this gives, once the program has ended."""
        book = History(**history)
        events = np.array(self.events, dtype=EVENT)
        for start in range(0, len(events), 4096):
            book.add(events[start : start + 4096])
        kept = book.live_events()
        live = [thing for thing in self.things if thing.count > 0]
        objects = np.zeros(len(live), dtype=OBJECT_RECORD)
        for name, values in {
            "address": [t.address for t in live], "object": [t.address for t in live], "type": [t.type for t in live],
            "time_ns": [t.born_ns for t in live], "stack": [t.stack for t in live], "count": [t.count for t in live],
            "gets": [t.gets for t in live], "puts": [t.puts for t in live], "tid": [t.tid for t in live],
            "serial": [t.serial for t in live], "initial": [t.initial for t in live],
        }.items():  # fmt: skip
            objects[name] = values
        objects["pid"], objects["generation"] = 812, 1
        return snapshot(
            self.code, objects=objects, history=kept, condensed=book.condensed(), balanced=book.balanced,
            freed_holders=book.freed_holders(), errors=book.errors(), error_history=book.error_history(),
            type_totals=book.type_totals(),
        )  # fmt: skip

    def _error(self, thing: Thing, calls: str, tid: int, kind: ErrorKind) -> None:
        self._event(
            Operation.ERROR, thing, calls, tid, value=thing.stack, flags=kind, extra=thing.type,
            object=thing.ended_at,
        )

    def _event(self, operation: Operation, thing: Thing, calls: str, tid: int, **more: int) -> None:
        self.time_ns += 1000
        values = {
            "time_ns": self.time_ns, "address": thing.address, "object": thing.address, "stack": self.stack(calls),
            "pid": 812, "generation": 1, "tid": tid, "operation": operation, "serial": thing.serial, **more,
        }  # fmt: skip
        assert EVENT.names is not None
        self.events.append(tuple(int(values.get(name, 0)) for name in EVENT.names))


@dataclass(frozen=True)
class Use:
    """A piece of a program that takes a reference here and gives it back there."""

    get: str
    put: str


@dataclass(frozen=True)
class Step:
    use: int
    """Index of the use; -1 is the birth."""
    is_get: bool
    tid: int = 812


Order = Callable[[random.Random, list[int]], list[Step]]


def nested(chance: random.Random, uses: list[int]) -> list[Step]:
    """Open and close like brackets."""
    steps: list[Step] = []
    open_: list[int] = []
    for use in uses:
        while open_ and chance.random() < 0.5:
            steps.append(Step(open_.pop(), False))
        open_.append(use)
        steps.append(Step(use, True))
    return steps + [Step(use, False) for use in reversed(open_)]


def shuffled(chance: random.Random, uses: list[int]) -> list[Step]:
    """Give back in any order."""
    steps: list[Step] = []
    open_: list[int] = []
    for use in uses:
        while open_ and chance.random() < 0.5:
            steps.append(Step(open_.pop(chance.randrange(len(open_))), False))
        open_.append(use)
        steps.append(Step(use, True))
    chance.shuffle(open_)
    return steps + [Step(use, False) for use in open_]


def threaded(chance: random.Random, uses: list[int]) -> list[Step]:
    """Each use in one of three threads, all interleaved."""
    return [Step(step.use, step.is_get, 812 + step.use % 3) for step in shuffled(chance, uses)]


def run(
    uses: Sequence[Use], birth: Use, order: Order, seed: int, objects: int, missing: int, leaking: int, most: int = 6,
    birth_last: bool = False,
) -> Simulation:
    """Let `objects` objects live, each with some of the uses; the first `leaking` that make use `missing` skip one put.

    `missing` -1: the creator's own put, which comes last of all with `birth_last`.
    """
    chance, made = random.Random(seed), Simulation()
    for _ in range(objects):
        chosen = [chance.randrange(len(uses)) for _ in range(chance.randint(0, most))]
        steps = order(chance, chosen)
        place = len(steps) if birth_last or order is nested else chance.randint(0, len(steps))
        steps.insert(max(place, 1 + max((i for i, s in enumerate(steps) if s.is_get), default=-1)), Step(-1, False))
        candidates = [i for i, step in enumerate(steps) if not step.is_get and step.use == missing]
        if leaking and candidates and chance.random() < 0.5:
            del steps[chance.choice(candidates)]
            leaking -= 1
        thing = made.create(birth.get)
        for step in steps:
            use = birth if step.use < 0 else uses[step.use]
            if step.is_get:
                made.get(thing, use.get, step.tid)
            else:
                made.put(thing, use.put, step.tid)
    return made
