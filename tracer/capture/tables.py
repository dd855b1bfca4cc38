"""Mapping tables and unwind rows: what the unwinder in BPF looks up, in memory that both sides share."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer.capture import kernel
from tracer.capture.binaries import OpenBinary
from tracer.capture.guest_runtimes import GuestRuntimes
from tracer.capture.maps import PAGE_COUNT, ROW_COUNT, Maps
from tracer.elf.unwind_cache import cached_table
from tracer.elf.unwind_table import UnwindTable
from tracer.model import records
from tracer.model.snapshot import Mapping

_NOWHERE = 1 << 62
_RULE_MASK = np.uint32((1 << 20) - 1)


class UnwindRows:
    """The rows, pages and rules of all binaries, filled from the front and never moved."""

    def __init__(self, maps: Maps, cache: Path) -> None:
        self._rows = maps.view("ROWS", "<u4", ROW_COUNT)
        self._pages = maps.view("PAGES", "<u4", PAGE_COUNT)
        self._rules = maps.view("RULES", records.RULE, records.RULES)
        self._rule_index: dict[bytes, int] = {bytes(records.RULE.itemsize): 0}
        self._row_count = self._page_count = 0
        self._cache = cache
        self.refused = 0
        """Binaries that no longer fitted."""

    def install(self, binary: OpenBinary) -> None:
        """Make a binary's unwind table known; without one its frames are walked by frame pointers."""
        if binary.has_table:
            return
        binary.has_table = True
        table = cached_table(binary.image, self._cache)
        if table is not None:
            self._append(binary, table)

    def _append(self, binary: OpenBinary, table: UnwindTable) -> None:
        rows, pages = len(table.rows), len(table.pages)
        if self._row_count + rows > ROW_COUNT or self._page_count + pages > PAGE_COUNT or not pages:
            self.refused += 1
            return
        rules = self._intern(table.rules)
        at, page = self._row_count, self._page_count
        self._rows[at : at + rows] = table.rows & ~_RULE_MASK | rules[table.rows & _RULE_MASK]
        self._pages[page : page + pages] = table.pages + np.uint32(at)
        self._row_count, self._page_count = at + rows, page + pages
        binary.first_page, binary.page_count, binary.first_link_page = page, pages - 1, table.first_link_page

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

    def __init__(self, maps: Maps, guests: GuestRuntimes) -> None:
        self._maps, self._guests = maps, guests
        self._tables = maps.view("TABLE_VALUES", records.TABLE, records.TABLES)
        self._tables["mappings"]["start"] = _NOWHERE
        self._tables["mappings"]["end"] = _NOWHERE
        self._free = deque(range(1, records.TABLES))
        self._table_of: dict[int, int] = {}
        self._shared = maps.view("SHARED", records.SHARED, 1)
        self.refused = 0

    def publish(self, pid: int, mappings: list[tuple[Mapping, OpenBinary, int]]) -> None:
        """Give `pid` a table of these executable mappings, each with its binary and bias."""
        if not self._free or len(mappings) > records.TABLE_MAPPINGS:
            self.refused += 1
            return
        rows = np.zeros(records.TABLE_MAPPINGS, records.MAPPING)
        rows["start"] = rows["end"] = _NOWHERE
        for row, (mapping, binary, bias) in zip(rows, sorted(mappings, key=lambda m: m[0].start), strict=False):
            row["start"], row["end"], row["bias"], row["binary"] = mapping.start, mapping.end, bias, binary.id
            row["first_page"], row["page_count"] = binary.first_page, binary.page_count
            row["first_link_page"] = binary.first_link_page
        number = self._free.popleft()
        self._tables[number]["mappings"] = rows
        self._tables[number]["count"] = len(mappings)
        self._guests.enter(number, ((binary, bias) for _, binary, bias in mappings))
        kernel.update_element(self._maps.fds["TABLE_OF"], pid.to_bytes(4, "little"), number.to_bytes(4, "little"))
        self._shared["published"] += 1
        self.drop(pid)
        self._table_of[pid] = number

    def share(self, parent: int, child: int) -> None:
        """Note that the kernel gave a forked child its parent's table."""
        if parent in self._table_of:
            self._table_of[child] = self._table_of[parent]

    def drop(self, pid: int) -> None:
        """Give a process's table back, when it has ended or got another."""
        number = self._table_of.pop(pid, None)
        if number is not None and number not in self._table_of.values():
            self._free.append(number)
