"""Mapping tables and unwind rows: what the unwinder in BPF looks up, in memory that both sides share."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tracer.binaries.open_binaries import OpenBinary
from tracer.cfi.unwind_cache import cached_table
from tracer.cfi.unwind_table import UnwindTable
from tracer.interpreters.runtimes import InterpreterRuntimes
from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model import records
from tracer.model.snapshot import Loss, Mapping
from tracer.spaces.free_list import FreeList

_NOWHERE = 1 << 62
TABLE_HEAD = np.dtype(
    [
        ("count", "<u4"), ("anonymous", "<u4"), ("identity", "<u8"),
        ("code", records.CODE_RANGE, (records.CODE_RANGES,)),
    ],
    align=True,
)
"""A table, up to its mappings."""
_RULE_MASK = np.uint32((1 << 20) - 1)
_LINK_PAGE_MASK = (1 << 32) - 1
_WALK_SECONDS = 5.0
"""No walk of a stack lasts so long, even if its thread is preempted within."""


class Unwound(Protocol):
    """Code with rows: a binary; or, with an id below 0, code that is in none."""

    id: int
    first_page: int
    page_count: int
    first_link_page: int


class UnwindRows:
    """The rows, pages and rules of all binaries, never moved. Those of code that a JIT took back are used again."""

    def __init__(self, maps: Maps, cache: Path, mishaps: Mishaps) -> None:
        self._maps, self._mishaps = maps, mishaps
        self._rules = maps.view("RULES", records.RULE, records.RULES)
        self._rule_index: dict[bytes, int] = {bytes(records.RULE.itemsize): 0}
        self._free_rows, self._free_pages = FreeList(maps.length("ROWS")), FreeList(maps.length("PAGES"))
        self._given_back: deque[tuple[float, Unwound]] = deque()
        self._row_extents: dict[int, tuple[int, int]] = {}
        self._users: Counter[int] = Counter()
        self._cache = cache
        self.refused = 0
        """Binaries that no longer fitted."""

    @property
    def losses(self) -> Iterator[Loss]:
        if self.refused:
            yield Loss("unwind table not kept: too many binaries", self.refused, "trace fewer")

    def install(self, binary: OpenBinary) -> None:
        """Make a binary's unwind table known; without one its frames are walked by frame pointers."""
        if binary.has_table:
            return
        binary.has_table = True
        with self._mishaps.attempt():
            table = cached_table(binary.image, self._cache)
            if table is not None:
                self.add(binary, table)

    def add(self, binary: Unwound, table: UnwindTable) -> None:
        """Make a table known as that of `binary`; `refused` counts those that do not fit."""
        self._reuse()
        rows, pages = len(table.rows), len(table.pages)
        at, page = self._free_rows.take(rows), self._free_pages.take(pages)
        if at is None or page is None:
            self.refused += 1
            if at is not None:
                self._free_rows.give_back(at, rows)
            if page is not None:
                self._free_pages.give_back(page, pages)
            return
        rules = self._intern(table.rules)
        self._maps.write("ROWS", 4 * at, table.rows & ~_RULE_MASK | rules[table.rows & _RULE_MASK])
        self._maps.write("PAGES", 4 * page, table.pages + np.uint32(at))
        self._row_extents[binary.id] = at, rows
        binary.first_page, binary.page_count = page, pages - 1
        binary.first_link_page = table.first_link_page & _LINK_PAGE_MASK

    def use(self, binary: Unwound) -> None:
        """Count one more address space that has code which a program made itself."""
        self._users[binary.id] += 1

    def release(self, binary: Unwound) -> None:
        """Count one less; give back the room of what no table of mappings names any more."""
        self._users[binary.id] -= 1
        if self._users[binary.id]:
            return
        del self._users[binary.id]
        if binary.id in self._row_extents:
            self._given_back.append((time.monotonic(), binary))

    def _reuse(self) -> None:
        """Free what was given back so long ago that no walk can still be in it."""
        while self._given_back and self._given_back[0][0] + _WALK_SECONDS < time.monotonic():
            binary = self._given_back.popleft()[1]
            self._free_rows.give_back(*self._row_extents.pop(binary.id))
            self._free_pages.give_back(binary.first_page, binary.page_count + 1)

    def _intern(self, rules: npt.NDArray[np.void]) -> npt.NDArray[np.uint32]:
        numbers = []
        for rule in rules:
            key = rule.tobytes()
            number = self._rule_index.get(key)
            if number is None:
                number = len(self._rule_index)
                if number >= records.RULES:
                    number = self._rule_index[bytes([records.RuleKind.UNSUPPORTED]) + bytes(7)]
                else:
                    self._rule_index[key] = number
                    self._rules[number] = rule
            numbers.append(number)
        return np.array(numbers, np.uint32)


class MappingTables:
    """One table per address space, replaced as a whole when its executable mappings change.

    The kernel copies a table's number to a forked child, so that tables can be shared; a number is used again
    only after all others, so that a walk that is under way in the old table ends in peace.
    """

    def __init__(self, maps: Maps, interpreters: InterpreterRuntimes) -> None:
        self._maps, self._interpreters = maps, interpreters
        self._no_mappings = _no_mappings().tobytes()
        self._write(0, np.zeros(0, records.MAPPING), 0)  # what a process without a table has
        self._free = deque(range(1, records.TABLES))
        self._table_of: dict[int, int] = {}
        self._shared = maps.view("SHARED", records.SHARED, 1)
        self.refused = 0

    @property
    def losses(self) -> Iterator[Loss]:
        if self.refused:
            yield Loss("mapping table not kept: too many processes or mappings", self.refused, "trace fewer")

    @property
    def epoch(self) -> int:
        """Return what grows when the kernel side changes a process or a table."""
        return int(self._shared["epoch"][0])

    def publish(self, pid: int, mappings: list[tuple[Mapping, Unwound, int]], anonymous: int) -> None:
        """Give `pid` a table of these executable mappings, each with its binary and bias, unless it has it already.

        `anonymous`: the id of what is in no binary.
        """
        if not self._free or len(mappings) > records.TABLE_MAPPINGS:
            self.refused += 1
            return
        rows = np.array([
            (m.start, m.end, bias, code.first_page, code.page_count, code.first_link_page,
             code.id if code.id > 0 else anonymous)
            for m, code, bias in sorted(mappings, key=lambda m: m[0].start)
        ], records.MAPPING)  # fmt: skip
        if self._has(pid, rows, anonymous):
            return
        number = self._free.popleft()
        self._write(number, rows, anonymous)
        self._interpreters.enter(number, ((code, bias) for _, code, bias in mappings if isinstance(code, OpenBinary)))
        bpf.update_element(self._maps.fds["TABLE_OF"], pid.to_bytes(4, "little"), number.to_bytes(4, "little"))
        self._shared["published"] += 1
        self.drop(pid)
        self._table_of[pid] = number

    def _write(self, number: int, mappings: npt.NDArray[np.void], anonymous: int) -> None:
        head, told = np.zeros(1, TABLE_HEAD), mappings.tobytes()
        head["count"], head["anonymous"] = len(mappings), anonymous
        ranges = code_ranges(mappings)
        head["code"]["start"][0, : len(ranges)], head["code"]["end"][0, : len(ranges)] = ranges.T
        digest = hashlib.blake2b(head.tobytes() + told, digest_size=8).digest()
        head["identity"] = int.from_bytes(digest, "little")
        table = b"".join([head.tobytes(), told, self._no_mappings[len(told) :]])
        self._maps.write_bytes("TABLE_VALUES", number * records.TABLE.itemsize, table)

    def _has(self, pid: int, rows: npt.NDArray[np.void], anonymous: int) -> bool:
        """Tell whether the kernel side looks up a process's code in a table with these rows."""
        number = bpf.lookup_element(self._maps.fds["TABLE_OF"], pid.to_bytes(4, "little"), 4)
        if not number or int.from_bytes(number, "little") & ~records.TABLE_SHARED != self._table_of.get(pid, 0):
            return False
        known = self._table_of.get(pid)
        if known is None:
            return False
        told, begin = rows.tobytes(), TABLE_HEAD.itemsize
        table = self._maps.read_bytes("TABLE_VALUES", known * records.TABLE.itemsize, begin + len(told))
        head = np.frombuffer(table, TABLE_HEAD, 1)[0]
        return bool(head["anonymous"] == anonymous and head["count"] == len(rows) and table[begin:] == told)

    def note_code(self, pid: int, generation: int, start: int, length: int) -> None:
        """Note a range of executable memory that is in no file."""
        key = np.zeros(1, records.KEY)
        key["address"], key["pid"], key["generation"] = start, pid, generation
        bpf.update_element(self._maps.fds["CODE_SEEN"], key.tobytes(), length.to_bytes(8, "little"))

    def share(self, parent: int, child: int) -> None:
        """Note that the kernel gave a forked child its parent's table."""
        if parent in self._table_of:
            self._table_of[child] = self._table_of[parent]

    def drop(self, pid: int) -> None:
        """Give a process's table back, when it has ended or got another."""
        number = self._table_of.pop(pid, None)
        if number is not None and number not in self._table_of.values():
            self._free.append(number)


def code_ranges(mappings: npt.NDArray[np.void]) -> npt.NDArray[np.uint64]:
    """Return at most CODE_RANGES pairs of start and end that mappings in order of address lie in: split at the widest
    gap, which is that between a program and its libraries."""
    if len(mappings) < records.CODE_RANGES:
        return np.array([(m["start"], m["end"]) for m in mappings], np.uint64).reshape(-1, 2)
    at = int(np.argmax(mappings["start"][1:] - mappings["end"][:-1]))
    ends = mappings["end"][[at, -1]]
    return np.stack([mappings["start"][[0, at + 1]], ends], axis=1).astype(np.uint64)


def _no_mappings() -> npt.NDArray[np.void]:
    rows = np.zeros(records.TABLE_MAPPINGS, records.MAPPING)
    rows["start"] = rows["end"] = _NOWHERE
    return rows
