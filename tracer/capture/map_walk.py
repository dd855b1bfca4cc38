"""Walk of the kernel side's maps: what they hold of all address spaces, as tables of records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tracer.aggregation.freed_counters import FREED_BLOCK
from tracer.aggregation.inheritance import FREE_RECORD, GHOST_RECORD
from tracer.capture.ended_books import EndedBooks
from tracer.kernel import bpf
from tracer.kernel.fronts import read_live_front
from tracer.kernel.kernel_records import FREED_PLACE, FREED_SET
from tracer.kernel.maps import Maps, thread_value
from tracer.model import records
from tracer.model.addresses import space_numbers
from tracer.model.distinct_values import begins_of
from tracer.model.snapshot import Records
from tracer.model.statistics import LIFE_BIN

_STACK_KEY = np.dtype([("stack", "<u8")])
_THREADS_AT_ONCE = 8
"""Each takes 56 KB."""
_INDEX = np.dtype([("index", "<u4")])
_THREAD_KEY = np.dtype([("tid", "<u4")])


def _joined(dtype: np.dtype[np.void], keys: Records, values: Records) -> Records:
    """Return one array with the fields of both."""
    joined = np.zeros(len(keys), dtype)
    for part in (keys, values):
        for name in part.dtype.names or ():
            if name in (dtype.names or ()):
                joined[name] = part[name]
    return joined


def _since(start_ns: int, times: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    start = np.uint64(start_ns)
    return np.where(times > start, times - start, np.uint64(0))


class MapWalk:
    """`started_ns`: the kernel's clock when the trace began, from which all times are counted; `freed_sets`: how many
    sets of freed blocks are kept; `between`: what to do between the parts of a walk of a million blocks, while whoever
    is held waits, and the rings fill. What was taken out of the maps, `ended`, is told as if it were still there."""

    def __init__(
        self, maps: Maps, ended: EndedBooks, started_ns: int = 0, freed_sets: int = 0,
        between: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._maps, self._ended, self._start, self._sets, self._between = maps, ended, started_ns, freed_sets, between

    def _timed(self, record: np.dtype[np.void], keys: Records, values: Records) -> Records:
        joined = _joined(record, keys, values)
        joined["time_ns"] = _since(self._start, joined["time_ns"])
        return joined

    def blocks(self) -> Records:
        """Return the live blocks by address: what looks up a million of them is faster for it at each step."""
        behind = self._ended.read("LIVE", self._between)
        keys, values = (np.concatenate(both) for both in zip(read_live_front(self._maps), behind, strict=True))
        blocks = self._timed(records.ALLOCATION_RECORD, keys, values)
        return blocks[np.argsort(blocks["address"])]

    def objects(self) -> Records:
        objects = self._timed(records.OBJECT_RECORD, *self._ended.read("OBJECTS", self._between))
        objects["count"] += objects["gets"].astype(np.int64) - objects["puts"].astype(np.int64)
        return objects

    def ghosts(self) -> Records:
        """Return GHOST_RECORDs, of one address as many as were freed there after a fork."""
        keys, values = self._ended.read("GHOSTS", self._between)
        older, replaced = self._ended.read("OLDER_GHOSTS", self._between)
        keys, values = np.concatenate([keys, older["key"]]), np.concatenate([values, replaced])
        joined = self._timed(GHOST_RECORD, keys, values["allocation"])
        joined["freed_ns"] = _since(self._start, values["freed_ns"])
        return joined

    def space_totals(self) -> tuple[Records, Records]:
        """Return (KEY, SPACE_TOTALS) of every address space, with what living threads had not yet added."""
        keys, values = self._ended.read("SPACE_TOTALS", self._between, 4096)
        _, threads = self._maps.read("THREADS", _THREAD_KEY, thread_value(), _THREADS_AT_ONCE)
        threads = threads["head"]
        all_keys = np.concatenate([keys, np.zeros(len(threads), records.KEY)])
        all_keys["pid"][len(keys) :], all_keys["generation"][len(keys) :] = threads["pid"], threads["generation"]
        all_values = np.concatenate([values, threads["totals"]])
        numbers = space_numbers(all_keys)
        order = np.argsort(numbers, kind="stable")
        begins = begins_of(numbers[order])
        sums = np.zeros(len(begins), records.SPACE_TOTALS)
        for name in records.SPACE_TOTALS.names or ():
            sums[name] = np.add.reduceat(all_values[name][order], begins) if len(begins) else 0
        return all_keys[order[begins]], sums

    def totals(self) -> tuple[Records, Records]:
        """Return the totals by stack, and the lives of the freed as rows of LIFE_BIN."""
        keys, values = self._maps.read("STACKS", _STACK_KEY, records.STACK_TOTALS, 16384, self._between)
        rows, bins = np.nonzero(values["lives"])
        lives = np.zeros(len(rows), LIFE_BIN)
        lives["stack"], lives["bin"], lives["count"] = keys["stack"][rows], bins, values["lives"][rows, bins]
        return _joined(records.TOTALS_RECORD, keys, values), lives

    def freed(self, totals: Records) -> Records:
        """Return the blocks that were freed lately. `totals`: SPACE_TOTALS; where none was freed, nothing is read."""
        parts = [np.zeros(0, FREED_BLOCK)]
        has_any = self._sets and (totals["freed"].any() or totals["unknown_frees"].any())
        batches = bpf.read_batches(self._maps.fds["FREED"], _INDEX, FREED_SET, 4096, self._between) if has_any else ()
        for _, sets in batches:
            used = sets["address"] != 0
            part = np.zeros(np.count_nonzero(used), FREED_BLOCK)
            part["address"], part["time_ns"] = sets["address"][used], _since(self._start, sets["time_ns"][used])
            blocks = sets["block"][used]
            for name in FREED_PLACE.names or ():
                part[name] = blocks[name]
            parts.append(part)
        return np.concatenate(parts)

    def free_sites(self) -> Records:
        seen = records.FREE_SEEN
        keys, values = self._maps.read("FREE_SITES", records.FREE_SITE, seen, 16384, self._between)
        return _joined(records.FREED_RECORD, keys, values)

    def inherited_frees(self) -> Records:
        """Return what forked children freed of what their parents had made."""
        return self._timed(FREE_RECORD, *self._ended.read("INHERITED_FREES", self._between))
