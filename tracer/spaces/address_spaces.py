"""Address spaces: which binaries are mapped where, now and before, and what the unwinder knows of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tracer.binaries.interposers import judge_mapped
from tracer.binaries.open_binaries import VDSO, Binaries, OpenBinary
from tracer.late_dataclasses import dataclass
from tracer.mishaps import Mishaps
from tracer.model.addresses import Range, Space
from tracer.model.records import TABLE_MAPPINGS
from tracer.model.snapshot import Loss, Mapping
from tracer.procfs.maps import MapsEntry, maps_text, parse_maps, paths_that_open
from tracer.procfs.process import read_memory
from tracer.spaces.generated_ranges import GeneratedRanges
from tracer.spaces.listener import Moment, SpaceListener
from tracer.spaces.mapping_tables import MappingTables, UnwindRows, Unwound

_MOST_READINGS = 3
_MOST_READINGS_KEPT = 8
_ADDRESS_MASK = (1 << 64) - 1
_Kept = TypeVar("_Kept")
_Place = tuple[int, int, int, int]
PlacedFile = tuple[Mapping, OpenBinary, int]
"""A file's mapping with its binary and its bias."""


@dataclass(frozen=True)
class _Reading:
    """What the mappings of a process were, as /proc/PID/maps told them, and the binaries in them."""

    text: str
    entries: Sequence[MapsEntry]
    binaries: Sequence[OpenBinary]

    def is_of(self, text: str) -> bool:
        """Tell whether a text that was read later says the same."""
        return text == self.text and not any(binary.is_stale for binary in self.binaries)


class Spaces(SpaceListener):
    """The mappings of every traced process, over time."""

    def __init__(self, binaries: Binaries, rows: UnwindRows, tables: MappingTables, mishaps: Mishaps) -> None:
        self._binaries, self._rows, self._tables, self._mishaps = binaries, rows, tables, mishaps
        self._live: dict[tuple[int, int], dict[_Place, Mapping]] = {}
        self._ended: list[Mapping] = []
        self._executable: dict[Space, list[PlacedFile]] = {}
        self._anonymous: dict[Space, int] = {}
        self.owner_of: dict[int, Space] = {}
        """Whose code in no binary an id stands for."""
        self.born_ns: dict[int, int] = {}
        """The kernel's clock when an id was not yet used."""
        self.generated = GeneratedRanges()
        self._readings: dict[Space, _Reading] = {}
        """Of the processes that were refreshed last."""
        self._entries: dict[Space, Sequence[MapsEntry]] = {}
        """Of the processes that were read last, be it that they have ended."""
        self.last_read: Sequence[MapsEntry] = []
        """All mappings of the process that was refreshed last."""

    @property
    def losses(self) -> Iterator[Loss]:
        if count := len(self.generated.unlisted):
            yield Loss("code of a JIT that could not be followed: too many mappings", count, "none yet")

    def refresh(self, pid: int, generation: int, now_ns: int) -> list[OpenBinary]:
        """Read a process's mappings, publish them to the unwinder, and return the binaries mapped."""
        for _ in range(_MOST_READINGS):
            epoch = self._tables.epoch
            binaries = self._read(pid, generation, now_ns)
            if epoch == self._tables.epoch:  # else the kernel side may have removed what was just published
                break
        return binaries

    def _read(self, pid: int, generation: int, now_ns: int) -> list[OpenBinary]:
        space, text = (pid, generation), maps_text(pid)
        reading = self._readings.get(space)
        if reading is None or not reading.is_of(text):
            entries = parse_maps(text)
            found, is_settled = self._placed(space, entries, now_ns)
            self.last_read = entries
            if not found:
                return []
            _keep(self._entries, space, entries)
            self._record(pid, generation, found, now_ns)
            self._executable[space] = [item for item in found.values() if item[0].executable]
            for _, binary, _ in self._executable[space]:
                self._rows.install(binary)
            binaries = {binary.id: binary for _, binary, _ in found.values()}
            with self._mishaps.attempt():
                judge_mapped(self._binaries, pid, binaries.values())
            reading = _Reading(text, entries, tuple(binaries.values()))
            self._readings.pop(space, None)
            if is_settled:  # it is often held a moment later, with nothing new
                _keep(self._readings, space, reading)
        self.last_read = reading.entries
        self.generated.drop_unmapped(space, reading.entries)
        self._publish(space)
        return list(reading.binaries)

    def _placed(
        self, space: Space, entries: Sequence[MapsEntry], now_ns: int
    ) -> tuple[dict[_Place, PlacedFile], bool]:
        """Return the mappings of files; and whether the same entries will be the same files as long as none of these is
        rewritten."""
        found: dict[_Place, PlacedFile] = {}
        known, is_settled = self._live.get(space, {}), True
        for entry in entries:
            if not entry.path:
                continue
            binary, bias = self._binaries.known(entry), None
            if binary is not None:
                bias = binary.bias_of(entry.start, entry.end, entry.file_offset)
            else:
                with self._mishaps.attempt():
                    binary = self._binary(space[0], entry)
                    bias = binary.bias_of(entry.start, entry.end, entry.file_offset) if binary else None
            if binary is None or bias is None:
                is_settled &= not entry.executable or (not entry.inode and entry.path != VDSO)
                continue
            place = entry.start, entry.end, entry.file_offset, binary.id
            mapping = known.get(place)
            if mapping is None or mapping.executable != entry.executable:
                mapping = Mapping(
                    *space, entry.start, entry.end, entry.file_offset, binary.id, entry.executable, now_ns,
                    link_address=(entry.start - bias) & _ADDRESS_MASK,
                )  # fmt: skip
            found[place] = mapping, binary, bias
        return found, is_settled

    def _publish(self, space: Space) -> None:
        """Give the unwinder the files' mappings, and as many of those made at run time as fit."""
        files = self._executable.get(space, [])
        if space not in self._anonymous:
            self._take_id(space)
        made = self.generated.listed(space, TABLE_MAPPINGS - len(files))
        self._tables.publish(space[0], [*files, *made], self._anonymous[space])

    def _take_id(self, space: Space) -> bool:
        number = self._binaries.take_id()
        if number is None:
            self._anonymous.setdefault(space, 0)
            return False
        self._anonymous[space] = number
        self.owner_of[number], self.born_ns[number] = space, time.monotonic_ns()
        return True

    def renumber(self, space: Space) -> bool:
        """Give the code in no binary another id from now on: it is not what it was. False where none is left."""
        if space not in self._executable or not self._take_id(space):
            return False
        self._publish(space)
        return True

    def anonymous_id(self, space: Space) -> int:
        """Return the id of a space's code in no binary; 0 for none."""
        return self._anonymous.get(space, 0)

    def as_last_read(self, space: Space) -> Sequence[MapsEntry]:
        """Return the mappings that a process had when it was last read; none where that was long ago."""
        return self._entries.get(space, ())

    def add_code(self, space: Space, key: int, binary: Unwound, ranges: Sequence[Range], bias: int) -> bool:
        """Map code that was made at run time, under a `key` of the caller's; False where a file's code is there."""
        if not self.generated.add(space, key, binary, ranges, bias, self._executable.get(space, ())):
            return False
        self._publish(space)
        return True

    def is_described(self, space: Space, ranges: Sequence[Range]) -> bool:
        """Tell whether a file, or an image with a key of 0 or more, has code in any of these ranges."""
        files = self._executable.get(space, ())
        return any(
            any(start < file.end and file.start < end for file, _, _ in files)
            or any(key >= 0 for key in self.generated.overlapping(space, start, end))
            for start, end in ranges
        )

    def remove_code(self, space: Space, key: int) -> None:
        if self.generated.remove(space, key):
            self._publish(space)

    def executable(self, space: Space) -> list[PlacedFile]:
        """Return the files' executable mappings as they are known now."""
        return self._executable.get(space, [])

    def bias_of(self, space: Space, binary: OpenBinary) -> int | None:
        """Return address minus link address of a binary in a process, or None where it is not mapped."""
        return next((bias for _, mapped, bias in self._executable.get(space, ()) if mapped.id == binary.id), None)

    def _binary(self, pid: int, entry: MapsEntry) -> OpenBinary | None:
        if entry.path == VDSO:
            data = read_memory(pid, entry.start, entry.end - entry.start)
            return self._binaries.add_image(VDSO, data) if data else None
        if entry.inode == 0 or not entry.path.startswith("/"):
            return None
        return self._binaries.mapped(entry, paths_that_open(pid, entry))

    def _record(
        self, pid: int, generation: int, found: dict[_Place, PlacedFile], now_ns: int
    ) -> None:
        known = self._live.setdefault((pid, generation), {})
        for place in [place for place in known if place not in found]:
            self._ended.append(_until(known.pop(place), now_ns))
        for place, (mapping, _, _) in found.items():
            known.setdefault(place, mapping)

    def note_code(self, pid: int, generation: int, start: int, length: int) -> None:
        """Have the process no longer wait when it makes this range executable, unless there is a file in it."""
        mappings = self._live.get((pid, generation), {}).values()
        if not any(m.executable and m.start < start + length and m.end > start for m in mappings):
            self._tables.note_code(pid, generation, start, length)

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Give a forked child its copy of the mappings and of the table."""
        self._live[child] = {
            place: replace(mapping, pid=child[0], generation=child[1], from_ns=moment.trace_ns)
            for place, mapping in self._live.get(parent, {}).items()
        }
        self._executable[child] = self._executable.get(parent, [])
        self.generated.forked(parent, child)
        if parent in self._anonymous:
            self._anonymous[child] = self._anonymous[parent]
        self._tables.share(parent[0], child[0])

    def ended(self, space: Space, moment: Moment) -> None:
        """End the mappings of an address space that ended or was exec'd away."""
        for mapping in self._live.pop(space, {}).values():
            self._ended.append(_until(mapping, moment.trace_ns))
        self._executable.pop(space, None)
        self._readings.pop(space, None)
        self._anonymous.pop(space, None)
        self.generated.ended(space)
        self._tables.drop(space[0])

    @property
    def records(self) -> tuple[Mapping, ...]:
        live = (mapping for space in self._live.values() for mapping in space.values())
        return (*self._ended, *live)


def _until(mapping: Mapping, time_ns: int) -> Mapping:
    """Return a mapping that has ended. There are some thirty of each process, and `replace` takes three times as
    long."""
    return Mapping(
        mapping.pid, mapping.generation, mapping.start, mapping.end, mapping.file_offset, mapping.binary,
        mapping.executable, mapping.from_ns, time_ns, mapping.link_address,
    )  # fmt: skip


def _keep(kept: dict[Space, _Kept], space: Space, value: _Kept) -> None:
    """Keep what was read of a process as the newest, and of others no more than the last few."""
    kept.pop(space, None)
    if len(kept) >= _MOST_READINGS_KEPT:
        del kept[next(iter(kept))]
    kept[space] = value
