"""The BPF maps: their kinds, sizes and the views that Python has of them."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.errors import KernelLacks, NotPermitted
from tracer.kernel import bpf
from tracer.kernel.blocked_signals import block_signals
from tracer.kernel.bpf import MapType
from tracer.kernel.kernel_records import THREAD_HEAD
from tracer.kernel.map_table import DeclaredMap, read_map_table
from tracer.kernel.shared_memory import SharedMemory
from tracer.kernel.sources import bpf_directory
from tracer.late_dataclasses import dataclass
from tracer.model import records

_LEAST_BEHIND_FRONT = 4096
_AT_ONCE = 2
_BUCKET_COST = 64
"""A hash has a bucket for each element, each of which the kernel sets up."""


@dataclass(frozen=True)
class Limits:
    """How much can be kept, and how long who is held. Each is an option that a loss report names."""

    objects: int = 1 << 22
    """Live allocations; a quarter of it counted objects."""
    stacks: int = 1 << 20
    threads: int = 1 << 15
    """And processes: those of a time, and as many again that have ended since it was looked at last."""
    event_ring_bytes: int = 1 << 26
    stack_ring_bytes: int = 1 << 24
    interpreter_ring_bytes: int = 1 << 24
    freed: int = 100_000
    """Blocks that were freed lately; 0: none."""
    hold_seconds: float = 5.0
    """So long is a process held at most, until its probes are in place."""
    look_seconds: float = 20.0
    """The same while a binary is looked at for the first time."""
    fitted_to: str = ""
    """Why they are smaller than usual, as a clause; nothing where they are not."""

    @property
    def freed_sets(self) -> int:
        """Return how many sets of four it takes: with twice the places, since not all sets are equally full."""
        return 1 << (self.freed // 2).bit_length() if self.freed else 0

    @property
    def block_sets(self) -> int:
        """Return how many sets of live blocks stand before the map of them: with a 16th of the room, 15 MB at most."""
        return min(1 << 16, 1 << self.objects.bit_length() - 7) if self.objects >= _LEAST_BEHIND_FRONT else 0


@dataclass(frozen=True)
class Constants:
    """What the programs are told before they are loaded, and does not change: struct constants of bpf/abi.h."""

    counts: bool = False
    """Count walks, frames and the like."""
    remembers: bool = True
    """Remember walks, and end others in them; without, for comparison, each is made in full."""


@cache
def thread_value() -> np.dtype[np.void]:
    """Return the dtype of the values of THREADS: a THREAD_HEAD, and what the kernel side has for itself."""
    size = read_map_table(bpf_directory()).rooms["thread"]
    return np.dtype([("head", THREAD_HEAD), ("rest", f"V{size - THREAD_HEAD.itemsize}")])


def _entries(limits: Limits) -> Mapping[str, int]:
    """Return what the names in the table of maps stand for."""
    blocks = max(limits.objects, 1)
    objects = max(blocks // 4, 1)
    return {
        "BLOCKS": blocks, "OBJECTS": objects, "INHERITED_FREES": min(objects, 1 << 18),
        "BLOCK_SETS": max(limits.block_sets, 1), "FREED_SETS": max(limits.freed_sets, 1),
        "STACKS": limits.stacks, "THREADS": limits.threads,
        "PROCESSES": limits.threads, "EVENT_RING_BYTES": limits.event_ring_bytes,
        "STACK_RING_BYTES": limits.stack_ring_bytes, "INTERPRETER_RING_BYTES": limits.interpreter_ring_bytes,
    }  # fmt: skip


class Descriptors(dict[str, int]):
    """The file descriptors of maps by name. A map is made when it is asked for, by whichever thread: that takes the
    kernel 10 ms for each million of elements, and not every trace needs every map. Raises NotPermitted, KernelLacks."""

    def __init__(self, table: Sequence[DeclaredMap], entries: Mapping[str, int]) -> None:
        super().__init__()
        self._declared = {one.name: (one, entries[one.name], threading.Lock()) for one in table}

    def __missing__(self, name: str) -> int:
        one, entries, lock = self._declared[name]
        with lock:
            if name not in self:
                self[name] = _created(one, entries)
        return self[name]

    @property
    def names(self) -> Sequence[str]:
        """All that there can be, in the order of the table."""
        return list(self._declared)

    def value_size(self, name: str) -> int:
        return self._declared[name][0].value_size

    def cost_of(self, name: str) -> int:
        """Return about how long it takes to make a map, in terms of the bytes of an array that would take as long."""
        one, entries, _ = self._declared[name]
        return entries * (_BUCKET_COST if one.kind == MapType.HASH else max(one.value_size, 1))


@dataclass
class Maps:
    """The maps of one trace: file descriptors by name, and numpy views of those that are shared memory."""

    fds: Descriptors
    limits: Limits
    entries: Mapping[str, int]
    """How many elements each has room for; of a ring, bytes."""
    _views: dict[str, SharedMemory] = field(default_factory=dict)
    """Those that are kept mapped: what is mapped counts as memory of this process, used or not."""

    @classmethod
    def create(cls, limits: Limits, constants: Constants | None = None) -> Maps:
        """Begin to make maps; raises NotPermitted or KernelLacks."""
        table, named = read_map_table(bpf_directory()).maps, _entries(limits)
        entries = {one.name: named[one.entries] if isinstance(one.entries, str) else one.entries for one in table}
        maps = cls(Descriptors(table, entries), limits, entries)
        try:
            maps._fix(constants or Constants())
        except BaseException:
            maps.close()
            raise
        return maps

    @contextmanager
    def being_made(self, names: Iterable[str]) -> Iterator[None]:
        """Have maps made beside the body, those that take longest first. Who asks for one waits until it is there, and
        hears what kept it from being made."""
        ordered = sorted(names, key=self.fds.cost_of, reverse=True)
        with ThreadPoolExecutor(_AT_ONCE, "maps", block_signals) as pool:
            for name in ordered:
                pool.submit(self.fds.__getitem__, name)
            yield

    def read(
        self, name: str, key: np.dtype[np.void], value: np.dtype[np.void], chunk: int = 65536,
        between: Callable[[], None] | None = None,
    ) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:  # fmt: skip
        """Return the keys and values of a hash map, as bpf.read_hash does: none of one that was never needed."""
        if name not in self.fds:
            return np.zeros(0, key), np.zeros(0, value)
        return bpf.read_hash(self.fds[name], key, value, chunk, between)

    def _fix(self, constants: Constants) -> None:
        hold_ns, look_ns = (round(s * 1e9) for s in (self.limits.hold_seconds, self.limits.look_seconds))
        row = constants.counts, constants.remembers, hold_ns, look_ns, self.limits.block_sets
        values = np.array([row], records.CONSTANTS)
        bpf.update_element(self.fds["CONSTANTS"], bytes(4), values.tobytes())
        bpf.freeze_map(self.fds["CONSTANTS"])

    def length(self, name: str) -> int:
        """Return of how many elements an array in shared memory is."""
        return read_map_table(bpf_directory()).lengths[name]

    def view(self, name: str, dtype: npt.DTypeLike, count: int = -1) -> npt.NDArray[Any]:
        """Return shared memory of an array map as a writable array."""
        kind = np.dtype(dtype)
        if name not in self._views:
            self._views[name] = SharedMemory(self.fds[name], self.fds.value_size(name))
        if count < 0:
            count = self._views[name].size_bytes // kind.itemsize
        return self._views[name].view(kind, count)

    def write(self, name: str, at: int, data: npt.NDArray[Any]) -> None:
        """Copy an array into an array map's only value, from its byte `at` on."""
        self.write_bytes(name, at, data.tobytes())

    def write_bytes(self, name: str, at: int, data: bytes) -> None:
        """Write an array map's only value, from its byte `at` on."""
        with self._part(name, at, len(data)) as part:
            begin = at % mmap.PAGESIZE
            part[begin : begin + len(data)] = data

    def read_bytes(self, name: str, at: int, size: int) -> bytes:
        """Return a copy of so many bytes of an array map's only value, from its byte `at` on."""
        with self._part(name, at, size) as part:
            begin = at % mmap.PAGESIZE
            return part[begin : begin + size]

    def _part(self, name: str, at: int, size: int) -> mmap.mmap:
        """Map the pages that hold some bytes, and no more: what stays mapped counts as this process's memory."""
        start = at & -mmap.PAGESIZE
        pages = at - start + size + mmap.PAGESIZE - 1 & -mmap.PAGESIZE
        return mmap.mmap(self.fds[name], pages, mmap.MAP_SHARED, offset=start)

    def close(self) -> None:
        for view in list(self._views.values()):
            view.close()
        for fd in list(self.fds.values()):  # after an interrupt a thread may still make some
            os.close(fd)


def _created(one: DeclaredMap, entries: int) -> int:
    try:
        return bpf.create_map(one.kind, one.key_size, one.value_size, entries, one.flags, one.name.lower())
    except PermissionError:
        raise NotPermitted("loading BPF programs needs root, or CAP_BPF and CAP_PERFMON") from None
    except OSError as error:
        raise KernelLacks(f"the kernel refused the BPF map {one.name}: {error.strerror}") from None
