"""The books of counted objects kept the slow and obvious way, and a small kernel that makes events."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from tracer.model.events import EVENT, EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import Records
from tracer.model.statistics import NEVER_PUT

CREATE, GET, PUT, DELETE = Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE


def event(operation: Operation, time_ns: int, serial: int, **fields: int) -> tuple[int, ...]:
    """Return one EVENT as a tuple; a create has type 7 and count 1 unless told."""
    row = np.zeros(1, dtype=EVENT)
    row["operation"], row["time_ns"], row["serial"] = operation, time_ns, serial
    row["address"], row["pid"], row["tid"] = 0x1000, 10, 10
    if operation == CREATE:
        row["value"], row["count"] = 7, 1
    for name, value in fields.items():
        row[name] = value
    return tuple(row[0].tolist())


def batch(*rows: tuple[int, ...]) -> Records:
    return np.array(list(rows), dtype=EVENT)


@dataclass
class Kernel:
    """Follows counts as the traced kernel side does, and writes down the events."""

    rows: list[tuple[int, ...]] = field(default_factory=list)
    live: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    serial: int = 0

    def step(self, operation: Operation, pid: int, address: int, tid: int, stack: int, value: int) -> None:
        """Take one operation; `value` is the holder, of a create the type."""
        time = 10 * (len(self.rows) + 1)
        common = {"pid": pid, "address": address, "tid": tid, "stack": stack}
        key = (pid, address)
        if operation == CREATE:
            self.serial += 1
            self.live[key] = (self.serial, 1)
            self.rows.append(event(CREATE, time, self.serial, value=value, **common))
            return
        if key not in self.live:
            self.rows.append(event(operation, time, 0, flags=EventFlag.UNKNOWN, **common))
            return
        serial, count = self.live[key]
        count += {GET: 1, PUT: -1, DELETE: -count}[operation]
        self.live[key] = (serial, count)
        if count == 0:
            del self.live[key]
        flags = EventFlag.LAST if count == 0 else 0
        self.rows.append(event(operation, time, serial, flags=flags, value=value, count=count, **common))


@dataclass
class NaiveHistory:
    live: list[tuple[int, ...]]
    pairs: Counter[tuple[int, int, int]]
    exact: Counter[tuple[int, int, int]]
    deaths: Counter[tuple[int, int, int]]
    lifetimes: dict[tuple[int, int], list[int]]
    totals: dict[tuple[int, int, int], Counter[str]]


def naive_history(rows: list[tuple[int, ...]]) -> NaiveHistory:
    """Keep the books of events that lost nothing: one Python object per object."""
    assert EVENT.names is not None
    events = [dict(zip(EVENT.names, row, strict=True)) for row in rows]
    objects: dict[tuple[int, ...], list[dict[str, int]]] = defaultdict(list)
    books = NaiveHistory([], Counter(), Counter(), Counter(), defaultdict(list), defaultdict(Counter))
    at_key: dict[tuple[int, int], tuple[int, ...]] = {}
    superseded = set()
    for e in events:
        if not e["serial"]:
            name = {GET: "unknown_gets", PUT: "unknown_puts"}.get(Operation(e["operation"]))
            if name:
                books.totals[0, e["pid"], 0][name] += 1
            continue
        identity = (e["pid"], e["address"], e["serial"])
        if e["operation"] == CREATE:
            superseded.add(at_key.get((e["pid"], e["address"])))
            at_key[e["pid"], e["address"]] = identity
        objects[identity].append(e)
    for identity, history in objects.items():
        _one(books, history, identity in superseded)
    return books


def _one(books: NaiveHistory, history: list[dict[str, int]], superseded: bool) -> None:
    birth, end = history[0], history[-1]
    totals = books.totals[birth["value"], birth["pid"], 0]
    totals["created"] += 1
    totals["gets"] += sum(e["operation"] == GET for e in history)
    totals["puts"] += sum(e["operation"] == PUT for e in history)
    ended = bool(end["flags"] & EventFlag.LAST)
    totals["destroyed"] += ended or superseded
    if not ended:
        if not superseded:
            books.live += [tuple(e.values()) for e in history]
        return
    books.deaths[birth["value"], birth["stack"], end["stack"]] += 1
    books.lifetimes[birth["value"], birth["stack"]].append(end["time_ns"] - birth["time_ns"])
    for get, put, exact in naive_pairs(history):
        key = (birth["value"], get or birth["stack"], put or int(NEVER_PUT))
        books.pairs[key] += 1
        books.exact[key] += exact


def naive_pairs(history: list[dict[str, int]]) -> list[tuple[int, int, bool]]:
    """Return (get stack, put stack, by holder?); 0 where there is none."""
    rest = [e for e in history if e["operation"] in (GET, PUT)]
    found = []
    for field_name, exact in (("value", True), ("tid", False), ("pid", False)):
        open_gets: dict[int, list[dict[str, int]]] = defaultdict(list)
        left = []
        for e in rest:
            key = e[field_name]
            if e["operation"] == GET and not (exact and key == 0):
                open_gets[key].append(e)
            elif e["operation"] == PUT and open_gets[key]:
                get = open_gets[key].pop()
                found.append((get["stack"], e["stack"], exact))
            else:
                left.append(e)
        rest = sorted([*left, *chain.from_iterable(open_gets.values())], key=lambda e: e["time_ns"])
    found += [(e["stack"], 0, False) if e["operation"] == GET else (0, e["stack"], False) for e in rest]
    return found
