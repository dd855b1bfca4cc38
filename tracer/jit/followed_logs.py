"""The logs that the JIT of one address space writes: a perf map, a jitdump."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import field
from pathlib import PurePath

from tracer.jit.code_log import NOTHING, CodeLog, Found, GeneratedFunction
from tracer.jit.jitdump import CodeMoved, JitdumpReader
from tracer.jit.perf_map import PerfMapReader
from tracer.jit.temporary_folders import TemporaryFolder
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.procfs.growing_file import GrowingFile
from tracer.procfs.maps import MapsEntry, paths_that_open
from tracer.procfs.process import Credentials

_AT_ONCE = 1 << 18
"""Bytes read of a log before others get their turn: someone may be held meanwhile."""
MOST_OF_MAP, MOST_OF_DUMP = 1 << 27, 1 << 30
"""Bytes that are read of a log; what comes later is counted."""
MOST_MALFORMED = 1 << 18
_DUMP_NAME = late_pattern(r"jit-\d+\.dump")
_CLOCK_STEP_NS = 1_000_000_000
_EVER = 1 << 63


@dataclass(eq=False)
class FollowedLogs:
    """`parent`: whose logs tell of what this space had when it was forked, at `forked_ns`."""

    pid: int
    credentials: Credentials
    folder: TemporaryFolder | None
    began_ns: int
    parent: FollowedLogs | None = None
    map_log: CodeLog = field(default_factory=CodeLog)
    dump_log: CodeLog = field(default_factory=CodeLog)
    notes: list[str] = field(default_factory=list)
    passed: tuple[tuple[int, int], int] | None = None
    """Identity and size of a map that the program before an exec wrote."""
    _map: GrowingFile | None = None
    _dump: GrowingFile | None = None
    _map_reader: PerfMapReader = field(default_factory=PerfMapReader)
    _dump_reader: JitdumpReader = field(default_factory=JitdumpReader)
    _map_bytes: int = 0
    _dump_bytes: int = 0
    _whole_ns: dict[str, int] = field(default_factory=dict)
    """When all there was of a log had been read."""

    @property
    def has_map(self) -> bool:
        return self._map is not None

    @property
    def is_open(self) -> bool:
        """Whether there is a log to be read."""
        return self._map is not None or self._dump is not None

    @property
    def has_any(self) -> bool:
        return bool(len(self.map_log) or len(self.dump_log) or (self.parent is not None and self.parent.has_any))

    def open_map(self) -> bool:
        """Open the perf map, if it is there now and not one that an earlier process of this number left."""
        if self._map is not None or self.folder is None or self._map_bytes:
            return False
        owners = (self.credentials.user, 0, os.geteuid())
        name = f"perf-{self.credentials.inner_pid}.map"
        found = GrowingFile.open(name, owners, self.folder.fd)
        if found is None:
            return False
        if found.modified_ns < self.credentials.started_ns - _CLOCK_STEP_NS:
            found.close()
            return False
        if self.passed is not None and self.passed[0] == found.identity:
            found.skip(self.passed[1])
        self._map = found
        return True

    def position(self) -> tuple[tuple[int, int], int] | None:
        """Return identity and size of the map; None where there is none."""
        return (self._map.identity, self._map.size) if self._map is not None else self.passed

    def open_dump(self, entries: Iterable[MapsEntry]) -> bool:
        """Open the jitdump, if the process has mapped one as executable, which is how one makes itself known."""
        if self._dump is not None or self._dump_bytes > MOST_OF_DUMP or self.dump_log.is_full:
            return False
        for entry in entries:
            if entry.executable and entry.inode and _DUMP_NAME.fullmatch(PurePath(entry.path).name):
                for path in paths_that_open(self.pid, entry):
                    self._dump = GrowingFile.open_mapped(path)
                    if self._dump is not None:
                        return True
        return False

    def read(self, now_ns: int) -> tuple[list[GeneratedFunction], bool]:
        """Read what is new. Return the functions that were replaced, and whether there is more to read."""
        replaced: list[GeneratedFunction] = []
        more = False
        if self._map is not None:
            data = self._map.read(_AT_ONCE)
            after, more = self._whole_ns.get("map", self.began_ns), len(data) == _AT_ONCE
            self._map_bytes += len(data)
            for line in self._map_reader.feed(data):
                new = GeneratedFunction(line.start, line.start + line.size, line.name, after, now_ns)
                replaced += self.map_log.add(new)
            if not more:
                self._whole_ns["map"] = now_ns
            elif self._map_bytes > MOST_OF_MAP or self.map_log.is_full or self._map_reader.malformed > MOST_MALFORMED:
                self._give_up("perf map", self.map_log)
                self._close_map()
                more = False
        if self._dump is not None:
            data = self._dump.read(_AT_ONCE)
            more_of_dump = len(data) == _AT_ONCE
            self._dump_bytes += len(data)
            replaced += self._read_dump(data, now_ns)
            if not more_of_dump:
                self._whole_ns["dump"] = now_ns
            elif self._dump_bytes > MOST_OF_DUMP or self.dump_log.is_full:
                self._give_up("jitdump", self.dump_log)
                self.close_dump()
                more_of_dump = False
            more |= more_of_dump
        return replaced, more

    def _read_dump(self, data: bytes, now_ns: int) -> list[GeneratedFunction]:
        replaced: list[GeneratedFunction] = []
        for event in self._dump_reader.feed(data):
            has_time = event.time_ns is not None and event.time_ns <= now_ns
            times = (event.time_ns or 0,) * 2 if has_time else (self._whole_ns.get("dump", self.began_ns), now_ns)
            if isinstance(event, CodeMoved):
                before = self.dump_log.find(event.old, _EVER, _EVER).function
                gone = GeneratedFunction(event.old, event.old + event.size, None, *times)
                replaced += self.dump_log.add(gone)
                if before is not None:
                    by = event.new - event.old
                    places = tuple((address + by, file, line) for address, file, line in before.places)
                    moved = GeneratedFunction(event.new, event.new + event.size, before.name, *times, places)
                    replaced += self.dump_log.add(moved)
            else:
                end = event.start + event.size
                loaded = GeneratedFunction(event.start, end, event.name, *times, event.places)
                replaced += self.dump_log.add(loaded)
        if self._dump_reader.refused is not None:
            self.notes.append(f"the jitdump of process {self.pid} is not read: {self._dump_reader.refused}")
            self.close_dump()
        return replaced

    def find(self, address: int, after_ns: int, until_ns: int) -> Found:
        """Return what was at an address between two times; a jitdump knows more than a perf map."""
        for log in (self.dump_log, self.map_log):
            found = log.find(address, after_ns, until_ns)
            if found is not NOTHING:
                return found
        if self.parent is not None:
            return self.parent.find(address, self.began_ns, self.began_ns)
        return NOTHING

    def _give_up(self, what: str, log: CodeLog) -> None:
        """Read no more of a log that is longer than any program needs; what is in it counts as one loss."""
        log.lost += 1
        self.notes.append(f"the {what} of process {self.pid} is too long: only its beginning was read")

    def close_dump(self) -> None:
        if self._dump is not None:
            self._dump.close()
            self._dump = None

    def close(self) -> None:
        """Close the files; what was read of them stays."""
        self.close_dump()
        self._close_map()

    def _close_map(self) -> None:
        if self._map is not None:
            self.passed = self.position()
            self._map.close()
            self._map = None
