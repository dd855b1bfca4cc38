"""A Snapshot, put together from a session: the maps walked, the last events aggregated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from signal import SIGTRAP

import numpy as np

from tracer.aggregation.freed_counters import FREED_BLOCK, with_freed_counters, without_moved
from tracer.aggregation.inheritance import inherited_allocations
from tracer.aggregation.merged_stacks import merge_stacks
from tracer.aggregation.merged_types import merge_types
from tracer.binaries.usable_sizes import asks_for_usable_size
from tracer.capture.allocator_memory import heaps_of, of_program
from tracer.capture.class_types import ClassTypes, read_class_types
from tracer.capture.map_walk import MapWalk
from tracer.capture.session import Session
from tracer.capture.type_names import read_type_names
from tracer.capture.wrapper_stacks import outside_wrappers
from tracer.model.generated import GeneratedFrame
from tracer.model.snapshot import Mapping, Process, Records, Snapshot, Stack
from tracer.scanning.last_holders import with_last_holders
from tracer.scanning.surroundings import ModuleTable
from tracer.scanning.zeroed_data import with_zeroed_data


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
    options = session.options
    between = session.drain if running and drain else None
    freed_sets = options.limits.freed_sets
    walk = MapWalk(session.kernel.maps, session.ended_books, session.clock.started_ns, freed_sets, between)
    judges = (options.reachability and not running) or on_read is not None
    live, objects, ghosts, frees = _alive(walk, on_read)
    keys, values = _space_totals(walk, keeps_all=options.selection.keeps_all)
    freed = walk.freed(values) if len(objects) or judges else np.zeros(0, FREED_BLOCK)
    processes = session.processes.records(keys, values)
    mappings = session.spaces.records
    type_totals = session.events.history.type_totals()
    totals, lives = walk.totals()
    events = session.events.aggregated(running=running)
    names, classes = _types(session, mappings)
    snapshot = Snapshot(
        mode=session.mode,
        duration_ns=session.clock.duration_ns,
        processes=processes,
        binaries=(*(binary.record for binary in session.binaries.all), *session.code.images()),
        generated=_generated(session),
        mappings=mappings,
        sites=tuple(session.sites.infos),
        types={**names, **classes.names},
        type_totals=type_totals,
        stacks=_stacks(session, between),
        script_frames=tuple(session.stacks.script_frames.frames),
        allocations=live,
        objects=objects,
        mapped=outside_wrappers(of_program(events.mapped), session.stacks.stacks, session.binaries.all),
        inherited=inherited_allocations(live, ghosts, processes, frees),
        totals=outside_wrappers(totals, session.stacks.stacks, session.binaries.all),
        checkpoints=tuple(session.checkpoints.taken),
        checkpoint_totals=session.checkpoints.totals(),
        life_bins=lives,
        heap_course=session.heap_course.points(),
        free_sites=walk.free_sites(),
        history=events.history,
        condensed=events.condensed,
        freed_holders=events.freed_holders,
        balanced=events.balanced,
        errors=events.errors,
        error_history=events.error_history,
        losses=tuple(session.losses),
        coverage=session.coverage(processes, mappings),
        notes=(*session.notes, *_trapped(processes)),
        events_seen=_events_seen(values),
        target_ended=not running and session.target_ended,
        selection=options.selection,
    )
    snapshot = with_freed_counters(snapshot, np.concatenate([without_moved(freed, snapshot), events.unmapped]))
    snapshot = _joined_up(session, snapshot, classes)
    return _judged(session, snapshot, freed, events.mapped) if judges else snapshot


def _stacks(session: Session, between: Callable[[], None] | None) -> dict[int, Stack]:
    if between is not None:
        session.stacks.settle_all(between)
    return session.stacks.stacks


def _space_totals(walk: MapWalk, *, keeps_all: bool) -> tuple[Records, Records]:
    keys, values = walk.space_totals()
    if not keeps_all:  # a block that was not kept looks like one older than the trace
        values["freed"] += values["unknown_frees"]
        values["unknown_frees"] = 0
    return keys, values


def _judged(session: Session, snapshot: Snapshot, freed: Records, mapped: Records) -> Snapshot:
    heaps = heaps_of(mapped, session.stacks.stacks, session.binaries.all)  # by the stacks as they were read
    modules = ModuleTable(snapshot, partial(asks_for_usable_size, session.binaries))
    return with_last_holders(session.endings.judged(snapshot, freed, modules, heaps))


def _joined_up(session: Session, snapshot: Snapshot, classes: ClassTypes) -> Snapshot:
    """Bring together what was read apart."""
    if session.stacks.has_dumps:
        snapshot = merge_stacks(snapshot)
    snapshot = merge_types(snapshot, classes.types)
    with session.mishaps.attempt():
        snapshot = with_zeroed_data(session.aborted_frees.told(snapshot))
    return snapshot


def _types(session: Session, mappings: tuple[Mapping, ...]) -> tuple[dict[int, str], ClassTypes]:
    """Return the names of all types, and the types of all classes."""
    names, classes, types_fd = dict(session.sites.types), ClassTypes({}, {}), session.kernel.maps.fds["TYPES"]
    with session.mishaps.attempt():
        names |= read_type_names(types_fd, session.binaries, mappings)
    with session.mishaps.attempt():
        classes = read_class_types(types_fd, session.binaries, mappings, names)
    return names, classes


def _alive(walk: MapWalk, on_read: Callable[[], None] | None) -> tuple[Records, Records, Records, Records]:
    """Return blocks, objects, blocks that forked children have of their parents and those that they freed."""
    alive = walk.blocks(), walk.objects(), walk.ghosts(), walk.inherited_frees()
    if on_read is not None:
        on_read()
    return alive


def _generated(session: Session) -> dict[int, GeneratedFrame]:
    found: dict[int, GeneratedFrame] = {}
    with session.mishaps.attempt():
        found = session.code.frames()
    return found


def _events_seen(totals: Records) -> int:
    names = ("made", "freed", "unknown_frees", "events")
    return sum(int(totals[name].sum()) for name in names)
