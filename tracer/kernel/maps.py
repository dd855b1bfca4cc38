"""The BPF maps: their kinds, sizes and the views that Python has of them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.errors import KernelLacks, NotPermitted
from tracer.kernel import bpf
from tracer.kernel.bpf import MapType
from tracer.kernel.shared_memory import SharedMemory
from tracer.model import records

THREAD_BYTES = 64000
"""Room for `struct thread` of bpf/threads.bpf.h, which asserts that it fits."""
CALLS_BYTES = 3328
"""Room for `struct calls` of bpf/calls.bpf.h, which asserts that it fits."""
GUEST_BYTES = 36 << 10
"""Room for `struct guest` of bpf/interpreters.bpf.h, which asserts that it fits."""
FREED_SET_BYTES = 192
"""Of `struct freed_set` of bpf/freed.bpf.h: four blocks."""
PROGRAM_SLOTS = 16
DELAY_BYTES = 4 << 20
"""Read at each turn of a hold, only to pass time."""
COPY_RING_BYTES = 1 << 23
STACK_REQUEST_BYTES = 1 << 16
ROW_COUNT = 1 << 23
PAGE_COUNT = 1 << 19


@dataclass(frozen=True)
class Limits:
    """How much can be kept. Each is an option that a loss report names."""

    objects: int = 1 << 22
    """Live allocations; a quarter of it counted objects."""
    stacks: int = 1 << 20
    threads: int = 1 << 15
    processes: int = 1 << 15
    event_ring_bytes: int = 1 << 26
    stack_ring_bytes: int = 1 << 24
    guest_ring_bytes: int = 1 << 24
    freed: int = 100_000
    """Blocks that were freed lately; 0: none."""

    @property
    def freed_sets(self) -> int:
        """Return how many sets of four it takes: with twice the places, since not all sets are equally full."""
        return 1 << (self.freed // 2).bit_length() if self.freed else 0


@dataclass(frozen=True)
class Constants:
    """What the programs are told before they are loaded, and does not change: struct constants of bpf/abi.h."""

    counts: bool = False
    """Count walks, frames and the like."""
    joins: bool = True
    """End walks where they come to a frame that is remembered; without, for comparison, only whole walks are."""


@dataclass(frozen=True)
class _Map:
    kind: MapType
    key_size: int
    value_size: int
    entries: int
    flags: int = 0


_COUNTERS = {
    "LOSSES": _Map(MapType.PERCPU_ARRAY, 4, 8, len(records.LossKind)),
    "COUNTS": _Map(MapType.PERCPU_ARRAY, 4, 8, records.COUNT_SLOTS),
    "CONSTANTS": _Map(MapType.ARRAY, 4, records.CONSTANTS.itemsize, 1, bpf.F_READ_ONLY),
}


def _definitions(limits: Limits) -> dict[str, _Map]:
    key = records.KEY.itemsize
    grows = bpf.F_NO_PREALLOC
    blocks = max(limits.objects, 1)
    objects = max(blocks // 4, 1)

    def hash_map(key_size: int, value_size: int, entries: int) -> _Map:
        return _Map(MapType.HASH, key_size, value_size, entries, grows)

    def value(size: int) -> _Map:
        return _Map(MapType.ARRAY, 4, size, 1, bpf.F_MMAPABLE)

    return _COUNTERS | {
        "LIVE": hash_map(key, records.ALLOCATION.itemsize, blocks),
        "GHOSTS": hash_map(key, records.GHOST.itemsize, objects),
        "INHERITED_FREES": hash_map(key, 8, min(objects, 1 << 18)),
        "OBJECTS": hash_map(key, records.OBJECT.itemsize, objects),
        "FREED": _Map(MapType.ARRAY, 4, FREED_SET_BYTES, max(limits.freed_sets, 1)),
        "RELEASED": _Map(MapType.LRU_HASH, key, records.RELEASED.itemsize, 1 << 16),
        "BY_OBJECT": hash_map(key, records.COUNTERS.itemsize, objects),
        "STACKS": hash_map(8, records.STACK_TOTALS.itemsize, limits.stacks),
        "FREE_SITES": hash_map(records.FREE_SITE.itemsize, records.FREE_SEEN.itemsize, limits.stacks),
        "TYPES": hash_map(8, records.TYPE_NAME.itemsize, 1 << 16),
        "THREADS": hash_map(4, THREAD_BYTES, limits.threads),
        "CALLS": hash_map(4, CALLS_BYTES, limits.threads),
        "GUESTS": hash_map(4, GUEST_BYTES, limits.threads),
        "STACK_REQUESTS": _Map(MapType.RINGBUF, 0, 0, STACK_REQUEST_BYTES),
        "STACK_WORDS": hash_map(4, records.STACK_WORDS.itemsize, limits.threads),
        "TRUE_RETURNS": _Map(MapType.LRU_HASH, 16, 8, 1 << 14),
        "GUEST_CODES": hash_map(8, 8, 1 << 18),
        "HANDLES": hash_map(key, 8, 1 << 16),
        "PROCESSES": hash_map(4, records.PROCESS.itemsize, limits.processes),
        "TABLE_OF": hash_map(4, 4, limits.processes),
        "HOLDS": hash_map(4, 24, records.HOLD_SLOTS),
        "CODE_SEEN": _Map(MapType.LRU_HASH, key, 8, 1 << 14),
        "SPACE_TOTALS": hash_map(key, records.SPACE_TOTALS.itemsize, limits.processes),
        "EVENTS": _Map(MapType.RINGBUF, 0, 0, limits.event_ring_bytes),
        "STACK_RING": _Map(MapType.RINGBUF, 0, 0, limits.stack_ring_bytes),
        "GUEST_RING": _Map(MapType.RINGBUF, 0, 0, limits.guest_ring_bytes),
        "COPIES": hash_map(8, 8, 1 << 14),
        "COPY_OF": hash_map(4, records.STACK_COPY.itemsize, limits.threads),
        "COPY_RING": _Map(MapType.RINGBUF, 0, 0, COPY_RING_BYTES),
        "CONTROL": _Map(MapType.RINGBUF, 0, 0, 1 << 20),
        "PROGRAMS": _Map(MapType.PROG_ARRAY, 4, 4, PROGRAM_SLOTS),
        "SITES": value(records.SITE.itemsize * records.MAX_SITES),
        "SHARED": value(records.SHARED.itemsize),
        "DELAY": value(DELAY_BYTES),
        "BLANK_THREAD": value(THREAD_BYTES),
        "BLANK_CALLS": value(CALLS_BYTES),
        "BLANK_GUEST": value(GUEST_BYTES),
        "BLANK_COPY": value(records.STACK_COPY.itemsize),
        "PYTHONS": value(records.PYTHON.itemsize * records.TABLES),
        "LUAS": value(records.LUA.itemsize * records.LUA_LAYOUTS),
        "ROWS": value(4 * ROW_COUNT),
        "PAGES": value(4 * PAGE_COUNT),
        "RULES": value(records.RULE.itemsize * records.RULES),
        "TABLE_VALUES": value(records.TABLE.itemsize * records.TABLES),
    }


NAMES = tuple(_definitions(Limits()))
VIEWED = ("SITES", "SHARED", "RULES", "PYTHONS", "LUAS")
"""Those that are kept mapped: what is mapped counts as memory of this process, used or not."""
RINGS = ("EVENTS", "STACK_RING", "GUEST_RING", "COPY_RING", "CONTROL", "STACK_REQUESTS")


@dataclass
class Maps:
    """The maps of one trace: file descriptors by name, and numpy views of those that are shared memory."""

    fds: Mapping[str, int]
    limits: Limits
    _views: dict[str, SharedMemory] = field(default_factory=dict)

    @classmethod
    def create(cls, limits: Limits, constants: Constants | None = None) -> Maps:
        """Create all maps; raises NotPermitted or KernelLacks."""
        fds: dict[str, int] = {}
        maps = cls(fds, limits)
        try:
            for name, d in _definitions(limits).items():
                fds[name] = _created(name, d)
            maps._fix(constants or Constants())
            for name in VIEWED:
                maps._views[name] = SharedMemory(fds[name], _definitions(limits)[name].value_size)
        except BaseException:
            maps.close()
            raise
        return maps

    def _fix(self, constants: Constants) -> None:
        values = np.array([(constants.counts, constants.joins)], records.CONSTANTS)
        bpf.update_element(self.fds["CONSTANTS"], bytes(4), values.tobytes())
        bpf.freeze_map(self.fds["CONSTANTS"])

    def view(self, name: str, dtype: npt.DTypeLike, count: int = -1) -> npt.NDArray[Any]:
        """Return shared memory of an array map as a writable array."""
        kind = np.dtype(dtype)
        if count < 0:
            count = self._views[name].size_bytes // kind.itemsize
        return self._views[name].view(kind, count)

    def write(self, name: str, at: int, data: npt.NDArray[Any]) -> None:
        """Copy an array into an array map's only value, from its byte `at` on."""
        with self._part(name, at, data.nbytes) as part:
            begin = at % mmap.PAGESIZE
            part[begin : begin + data.nbytes] = data.tobytes()

    def read(self, name: str, at: int, dtype: np.dtype[np.void]) -> np.void:
        """Return a copy of one record of an array map's only value, at its byte `at`."""
        with self._part(name, at, dtype.itemsize) as part:
            begin = at % mmap.PAGESIZE
            record: np.void = np.frombuffer(part[begin : begin + dtype.itemsize], dtype)[0]
            return record

    def _part(self, name: str, at: int, size: int) -> mmap.mmap:
        """Map the pages that hold some bytes, and no more: what stays mapped counts as this process's memory."""
        start = at & -mmap.PAGESIZE
        pages = at - start + size + mmap.PAGESIZE - 1 & -mmap.PAGESIZE
        return mmap.mmap(self.fds[name], pages, mmap.MAP_SHARED, offset=start)

    @property
    def macros(self) -> list[str]:
        """Return what tells the BPF programs the maps."""
        return [f"-DFD_{name}={fd}" for name, fd in self.fds.items()]

    def close(self) -> None:
        for view in self._views.values():
            view.close()
        for fd in self.fds.values():
            os.close(fd)


def _created(name: str, d: _Map) -> int:
    try:
        return bpf.create_map(d.kind, d.key_size, d.value_size, d.entries, d.flags, name.lower())
    except PermissionError:
        raise NotPermitted("loading BPF programs needs root, or CAP_BPF and CAP_PERFMON") from None
    except OSError as error:
        raise KernelLacks(f"the kernel refused the BPF map {name}: {error.strerror}") from None
