"""A Snapshot, put together from a session: the maps walked, the last events aggregated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from signal import SIGTRAP

import numpy as np
import numpy.typing as npt

from tracer.aggregation.freed_counters import FREED_BLOCK, with_freed_counters
from tracer.aggregation.inheritance import FREE_RECORD, GHOST_RECORD, inherited_allocations
from tracer.aggregation.merged_stacks import merge_stacks
from tracer.aggregation.merged_types import merge_types
from tracer.capture.class_types import ClassTypes, read_class_types
from tracer.capture.losses import losses_of
from tracer.capture.session import Session
from tracer.capture.type_names import read_type_names
from tracer.capture.wrapper_stacks import outside_wrappers
from tracer.kernel import bpf
from tracer.kernel.kernel_records import FREED_PLACE, FREED_SET
from tracer.kernel.maps import thread_value
from tracer.model import records
from tracer.model.generated import GeneratedFrame
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.model.snapshot import (
    ANONYMOUS,
    Binary,
    Coverage,
    Mapping,
    Process,
    Records,
    Snapshot,
    Untraced,
)
from tracer.model.statistics import LIFE_BIN
from tracer.probing.untraced import untraced_programs

_TIME = np.dtype([("time_ns", "<u8")])
_STACK_KEY = np.dtype([("stack", "<u8")])
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


class _Walk:
    """Reads the maps of a session."""

    def __init__(self, session: Session, *, drains: bool) -> None:
        self._fds, self._start = session.maps.fds, session.started_ns
        self._sets = session.options.limits.freed_sets
        # Whoever is held waits, and the rings fill, for as long as a walk of a million blocks takes.
        self._between = session.drain if drains else None

    def records(self, name: str, value: np.dtype[np.void], record: np.dtype[np.void]) -> Records:
        keys, values = bpf.read_hash(self._fds[name], records.KEY, value, 16384, self._between)
        joined = _joined(record, keys, values)
        joined["time_ns"] = _since(self._start, joined["time_ns"])
        return joined

    def objects(self) -> Records:
        objects = self.records("OBJECTS", records.OBJECT, records.OBJECT_RECORD)
        objects["count"] += objects["gets"].astype(np.int64) - objects["puts"].astype(np.int64)
        return objects

    def ghosts(self) -> Records:
        keys, values = bpf.read_hash(self._fds["GHOSTS"], records.KEY, records.GHOST)
        joined = _joined(GHOST_RECORD, keys, values["allocation"])
        joined["time_ns"] = _since(self._start, joined["time_ns"])
        joined["freed_ns"] = _since(self._start, values["freed_ns"])
        return joined

    def space_totals(self) -> tuple[Records, Records]:
        """Return (KEY, SPACE_TOTALS) of every address space, with what living threads had not yet added."""
        keys, values = bpf.read_hash(self._fds["SPACE_TOTALS"], records.KEY, records.SPACE_TOTALS, 4096)
        _, threads = bpf.read_hash(self._fds["THREADS"], _THREAD_KEY, thread_value(), 1024)
        threads = threads["head"]
        all_keys = np.concatenate([keys, np.zeros(len(threads), records.KEY)])
        all_keys["pid"][len(keys) :], all_keys["generation"][len(keys) :] = threads["pid"], threads["generation"]
        all_values = np.concatenate([values, threads["totals"]])
        distinct, place = np.unique(all_keys[["pid", "generation"]], return_inverse=True)
        sums = np.zeros(len(distinct), records.SPACE_TOTALS)
        for name in records.SPACE_TOTALS.names or ():
            np.add.at(sums[name], place, all_values[name])
        return distinct, sums

    def totals(self) -> tuple[Records, Records]:
        """Return the totals by stack, and the lives of the freed as rows of LIFE_BIN."""
        keys, values = bpf.read_hash(self._fds["STACKS"], _STACK_KEY, records.STACK_TOTALS, 16384, self._between)
        rows, bins = np.nonzero(values["lives"])
        lives = np.zeros(len(rows), LIFE_BIN)
        lives["stack"], lives["bin"], lives["count"] = keys["stack"][rows], bins, values["lives"][rows, bins]
        return _joined(records.TOTALS_RECORD, keys, values), lives

    def freed(self) -> Records:
        """Return the blocks that were freed lately."""
        if not self._sets:
            return np.zeros(0, FREED_BLOCK)
        _, sets = bpf.read_hash(self._fds["FREED"], _INDEX, FREED_SET, 4096, self._between)
        rows = np.zeros(sets["address"].shape, FREED_BLOCK)
        rows["address"], rows["time_ns"] = sets["address"], _since(self._start, sets["time_ns"])
        for name in FREED_PLACE.names or ():
            rows[name] = sets["block"][name]
        freed: Records = rows[rows["address"] != 0]
        return freed

    def free_sites(self) -> Records:
        seen = records.FREE_SEEN
        keys, values = bpf.read_hash(self._fds["FREE_SITES"], records.FREE_SITE, seen, 16384, self._between)
        return _joined(records.FREED_RECORD, keys, values)


def _trapped(processes: Iterable[Process]) -> Iterator[str]:
    """Say what a SIGTRAP may come from."""
    for process in processes:
        if process.signal == SIGTRAP:
            yield (
                f"process {process.pid} was killed by SIGTRAP: if that happens under refleak only, it copies, checks "
                "or translates its own code, in which breakpoints stand"
            )


def take_snapshot(
    session: Session, *, running: bool = False, drain: bool = True, on_read: Callable[[], None] | None = None
) -> Snapshot:
    """Return all that is known, once `run` has returned; the target may be gone. `running`: before that.

    `drain`: read the rings between the parts of a walk, while the trace runs on. `on_read`: say what is lost by the
    memory that was read; called when what must agree with it was read too.
    """
    walk = _Walk(session, drains=running and drain)
    judges = (session.options.reachability and not running) or on_read is not None
    live, objects, ghosts, frees = _alive(session, walk, on_read)
    freed = walk.freed() if len(objects) or judges else np.zeros(0, FREED_BLOCK)
    keys, values = walk.space_totals()
    if not session.options.selection.keeps_all:  # a block that was not kept looks like one older than the trace
        values["freed"] += values["unknown_frees"]
        values["unknown_frees"] = 0
    processes = session.processes.records(keys, values)
    mappings = session.spaces.records
    type_totals = session.events.history.type_totals()
    totals, lives = walk.totals()
    memory = session.events.mapped_memory
    mapped = memory.so_far() if running else memory.live()
    # live_events folds all that ended, before the statistics are read
    events = session.events.history.so_far() if running else session.events.history.live_events()
    names, classes = _types(session, mappings)
    snapshot = Snapshot(
        mode=session.mode,
        duration_ns=session.duration_ns,
        processes=processes,
        binaries=tuple(_binaries(session)),
        generated=_generated(session),
        mappings=mappings,
        sites=tuple(session.sites.infos),
        types={**names, **classes.names},
        type_totals=type_totals,
        stacks=session.stacks.stacks,
        script_frames=tuple(session.stacks.script_frames.frames),
        allocations=live,
        objects=objects,
        mapped=outside_wrappers(mapped, session.stacks.stacks, session.binaries.all),
        inherited=inherited_allocations(live, ghosts, processes, frees),
        totals=outside_wrappers(totals, session.stacks.stacks, session.binaries.all),
        checkpoints=tuple(session.checkpoints.taken),
        checkpoint_totals=session.checkpoints.totals(),
        life_bins=lives,
        free_sites=walk.free_sites(),
        history=events,
        condensed=session.events.history.condensed(),
        balanced=session.events.history.balanced,
        errors=session.events.history.errors(),
        error_history=session.events.history.error_history(),
        losses=tuple(losses_of(session)),
        coverage=_coverage(session, processes, mappings),
        notes=(*session.notes, *_trapped(processes)),
        events_seen=_events_seen(values),
        target_ended=not running and session.target_ended,
        selection=session.options.selection,
    )
    return _joined_up(session, snapshot, freed, classes, judges=judges)


def _joined_up(session: Session, snapshot: Snapshot, freed: Records, classes: ClassTypes, *, judges: bool) -> Snapshot:
    """Bring together what was read apart. `judges`: say what is lost."""
    snapshot = with_freed_counters(snapshot, np.concatenate([freed, session.events.mapped_memory.unmapped()]))
    if session.completion.has_dumps:
        snapshot = merge_stacks(snapshot)
    snapshot = merge_types(snapshot, classes.types)
    return session.endings.judged(snapshot, freed) if judges else snapshot


def _coverage(session: Session, processes: tuple[Process, ...], mappings: tuple[Mapping, ...]) -> Coverage:
    binaries = {binary.id: binary for binary in session.binaries.all}
    untraced: tuple[Untraced, ...] = ()
    with session.mishaps.attempt():
        untraced = tuple(untraced_programs(processes, mappings, binaries, session.sites.infos[1:]))
    return replace(session.prober.coverage, untraced=(*untraced, *session.older_children))


def _types(session: Session, mappings: tuple[Mapping, ...]) -> tuple[dict[int, str], ClassTypes]:
    """Return the names of all types, and the types of all classes."""
    names, classes = dict(session.sites.types), ClassTypes({}, {})
    with session.mishaps.attempt():
        names |= read_type_names(session.maps.fds["TYPES"], session.binaries, mappings)
    with session.mishaps.attempt():
        classes = read_class_types(session.maps.fds["TYPES"], session.binaries, mappings, names)
    return names, classes


def _binaries(session: Session) -> Iterator[Binary]:
    """Yield all that were mapped, and those images of JITs that a stack goes through."""
    yield from (binary.record for binary in session.binaries.all)
    for id_ in sorted(session.seen.ids):
        image = session.binaries.generated.get(id_)
        yield image.record if image is not None else Binary(id_, "", kind=ANONYMOUS)


def _alive(
    session: Session, walk: _Walk, on_read: Callable[[], None] | None
) -> tuple[Records, Records, Records, Records]:
    """Return blocks, objects, blocks that forked children have of their parents and those that they freed."""
    alive = walk.records("LIVE", records.ALLOCATION, records.ALLOCATION_RECORD), walk.objects(), walk.ghosts()
    frees = _frees(session)
    if on_read is not None:
        on_read()
    return *alive, frees


def _generated(session: Session) -> dict[int, GeneratedFrame]:
    found: dict[int, GeneratedFrame] = {}
    with session.mishaps.attempt():
        found = _generated_frames(session)
    return found


def _generated_frames(session: Session) -> dict[int, GeneratedFrame]:
    """Return the frames in code that was made at run time: by the JIT's log, or by its image's symbols, which are here
    for who reads a recording without symbols."""
    found = dict(session.code.frames())
    images = session.binaries.generated
    symbols = {id_: images[id_].symbols for id_ in session.seen.ids & images.keys()}
    for key in session.seen.first:
        table, address = symbols.get(key >> FRAME_BINARY_SHIFT), key & FRAME_ADDRESS_MASK
        symbol = table.covering(address if key & FRAME_EXACT else address - 1) if table is not None else None
        if symbol is not None:
            found[key] = GeneratedFrame(symbol.name, offset=address - symbol.address)
    return found


def _frees(session: Session) -> Records:
    keys, values = bpf.read_hash(session.maps.fds["INHERITED_FREES"], records.KEY, _TIME)
    joined = _joined(FREE_RECORD, keys, values)
    joined["time_ns"] = _since(session.started_ns, joined["time_ns"])
    return joined


def _events_seen(totals: Records) -> int:
    names = ("made", "freed", "unknown_frees", "events")
    return sum(int(totals[name].sum()) for name in names)
