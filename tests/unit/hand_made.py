"""Hand-made snapshots: small enough to know what must come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tracer.model.events import ERROR_EVENT, EVENT, ErrorKind
from tracer.model.frames import Frame
from tracer.model.operations import Operation
from tracer.model.records import ALLOCATION_RECORD, MAPPED_RECORD, OBJECT_RECORD, TOTALS_RECORD, StackStatus
from tracer.model.snapshot import (
    Binary,
    Coverage,
    Loss,
    Process,
    Records,
    SiteInfo,
    Snapshot,
    Stack,
    TypeTotals,
    UncoveredInstances,
    Unresolved,
)

SECOND = 1_000_000_000
BINARIES = (
    Binary(1, "/usr/bin/srv", "aa11"),
    Binary(2, "/lib/x86_64-linux-gnu/libc.so.6", "bb22"),
    Binary(3, "/lib64/ld-linux-x86-64.so.2", "cc33"),
    Binary(4, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "dd44"),
)
MALLOC, MMAP, CREATE = 0, 1, 2
SITES = (
    SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", "malloc"),
    SiteInfo(Operation.MAP, "mmap", "libc.so.6", "mmap"),
    SiteInfo(Operation.CREATE, "__refcnt__init", "srv", None),
)
DSO, MAP = 0xD50, 0x3A9
TYPES = {DSO: "dso", MAP: "map"}


class Code:
    """Names for made-up addresses: each new frame gets a key of its own."""

    def __init__(self) -> None:
        self.symbols: dict[int, tuple[Frame, ...]] = {}
        self.stacks: dict[int, Stack] = {}
        self._next = 0x1000

    def frame(self, function: str | None, place: str | None = None, binary: int = 1, **more: Any) -> int:
        """Return the key of a new frame; `place` is FILE:LINE."""
        self._next += 16
        key = binary << 48 | self._next
        file, _, line = (place or "").rpartition(":")
        path = BINARIES[binary - 1].path
        self.symbols[key] = (
            Frame(
                function, path.rpartition("/")[2], path, BINARIES[binary - 1].build_id,
                file or None, int(line) if line else None, address=self._next, offset=4, **more,
            ),
        )  # fmt: skip
        return key

    def stack(self, id_: int, *keys: int, status: StackStatus = StackStatus.COMPLETE) -> int:
        self.stacks[id_] = Stack(keys, status)
        return id_


def records(dtype: np.dtype[np.void], rows: Iterable[Mapping[str, int]], **defaults: int) -> Records:
    rows = list(rows)
    made = np.zeros(len(rows), dtype=dtype)
    for index, row in enumerate(rows):
        for name, value in {**defaults, **row}.items():
            made[name][index] = value
    return made


def blocks(*rows: Mapping[str, int], **defaults: int) -> Records:
    return records(ALLOCATION_RECORD, rows, **{"pid": 812, "generation": 1, "site": MALLOC, "tid": 812} | defaults)


def mapped(*rows: Mapping[str, int], **defaults: int) -> Records:
    return records(MAPPED_RECORD, rows, **{"pid": 812, "generation": 1, "site": MMAP, "tid": 812} | defaults)


def objects(*rows: Mapping[str, int], **defaults: int) -> Records:
    usual = {"pid": 812, "generation": 1, "site": CREATE, "tid": 812, "type": DSO, "initial": 1, "count": 1}
    return records(OBJECT_RECORD, rows, **usual | defaults)


def events(*rows: Mapping[str, int], **defaults: int) -> Records:
    return records(EVENT, rows, **{"pid": 812, "generation": 1, "tid": 812} | defaults)


def broken_rules(*rows: Mapping[str, int], **defaults: int) -> Records:
    usual = {"pid": 812, "generation": 1, "tid": 812, "operation": Operation.ERROR}
    return records(ERROR_EVENT, rows, **usual | defaults)


def process(pid: int = 812, **more: Any) -> Process:
    usual: dict[str, Any] = {
        "generation": 1, "parent": None, "command": ("./srv", "--port", "80"), "executable": "/usr/bin/srv",
        "started_ns": 0, "ended_ns": 61 * SECOND, "exit_code": 0,
    }  # fmt: skip
    return Process(pid, **usual | more)


def snapshot(code: Code | None = None, **more: Any) -> Snapshot:
    code = code or Code()
    usual: dict[str, Any] = {
        "mode": "launched", "duration_ns": 61 * SECOND, "processes": (process(),), "binaries": BINARIES,
        "sites": SITES, "types": TYPES, "stacks": code.stacks, "events_seen": 2_204_117,
    }  # fmt: skip
    return Snapshot(**usual | more)


def server() -> tuple[Snapshot, Code]:
    """A server that leaks pages, keeps two of its counted objects, puts one too often, and has a child."""
    code = Code()
    main = [code.frame("main", "srv.c:21"), code.frame(None, binary=2), code.frame("_start")]
    malloc = code.frame("malloc", binary=2)
    serve = code.frame("serve", "/src/net/http.c:77")
    handle = code.frame("handle_request", "/src/net/http.c:402", inlined=True)
    page = code.stack(1, malloc, code.frame("parse_body", "body.c:118"), handle, serve, *main)
    name = code.stack(2, malloc, code.frame("strdup", binary=2), code.frame("dso__set_name", "dso.c:60"), *main)
    buffer = code.stack(3, malloc, code.frame("_IO_file_doallocate", binary=2), code.frame("printf", binary=2), *main)
    cut = code.stack(4, malloc, code.frame(None, binary=4, why_unknown="stripped"), status=StackStatus.NO_TABLE)
    new = [code.frame("dso__new", "dso.c:88"), code.frame("machine__findnew_dso", "machine.c:40"), *main]
    born = code.stack(5, code.frame("__refcnt__init", "refcnt.c:3"), *new)
    get = code.frame("__refcnt__get", "refcnt.c:9")
    got = code.stack(6, get, code.frame("map__new", "map.c:61"), code.frame("thread__insert_map", "thread.c:9"), *main)
    put = code.frame("__refcnt__put", "refcnt.c:14")
    dropped = code.stack(7, put, code.frame("map__delete", "map.c:203"), *main)
    again = code.stack(8, put, code.frame("thread__exit", "thread.c:99"), *main)
    arena = code.stack(9, code.frame("mmap", binary=2), code.frame("arena__map", "arena.c:12"), *main)
    live = [{"address": 0x5500 + 4096 * i, "size": 4096, "time_ns": i * SECOND, "stack": page} for i in range(7)]
    history = [
        {"address": 0x19000 + 64 * i, "serial": i, "operation": o, "stack": s, "time_ns": SECOND}
        for i in (0, 1) for o, s in ((Operation.GET, got), (Operation.GET, got), (Operation.PUT, dropped))
    ]  # fmt: skip
    snap = snapshot(
        code,
        processes=(
            process(made=18_402, freed=18_390),
            process(813, parent=812, command=("sh", "-c", "true"), exit_code=3, made=3, freed=2),
        ),
        allocations=blocks(
            *live,
            {"address": 0x100, "size": 13, "stack": name},
            {"address": 0x200, "size": 4096, "stack": buffer},
            {"address": 0x300, "size": 72, "stack": cut, "pid": 813, "tid": 813},
        ),
        inherited=blocks(*live[:2], pid=813),
        mapped=mapped({"start": 0x7F0000000000, "length": 1 << 20, "stack": arena}),
        objects=objects(
            {"address": 0x19000, "serial": 0},
            {"address": 0x19040, "serial": 1, "drift": 1},
            stack=born, count=2, gets=2, puts=1,
        ),
        history=events(*history),
        errors=broken_rules(
            *[{"address": 0x19100, "stack": again, "release": dropped, "birth": born, "broken_type": DSO}] * 2,
            error=ErrorKind.OVER_PUT,
        ),
        totals=records(TOTALS_RECORD, [{"stack": page, "made": 18_000, "freed": 17_993}]),
        type_totals=(TypeTotals(DSO, 812, 1, 40, 120, 119, 38), TypeTotals(MAP, 812, 1, 7, 3, 10, 7)),
        coverage=Coverage(
            34,
            (Unresolved("get", "map", "map__get", "inlined everywhere"),),
            (UncoveredInstances("get", "map", "map__get", 3, "its parameter was optimised away"),),
        ),
    )  # fmt: skip
    return snap, code


LOSSES = (Loss("map of live blocks full", 300, "--max-objects 2000000"), Loss("event ring full", 17, "--ring-size 64M"))
