"""Evidence that every judgement draws on: the snapshot, its stacks, and the processes' ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tracer.analysis.call_sites import EntryIds
from tracer.analysis.groups import group_rows
from tracer.analysis.holders import HoldersOfEntries
from tracer.analysis.kin import KinOfTypes
from tracer.analysis.makers import Makers
from tracer.analysis.own_frame import OwnFrames
from tracer.analysis.reached import reached, why_unknown
from tracer.analysis.stacks import SymbolizedStacks
from tracer.analysis.unseen_calls import freed_unseen, unseen_calls
from tracer.model.distinct_values import distinct
from tracer.model.events import ErrorKind
from tracer.model.findings import ALIVE_AT_EXEC, LEAKED, OUTSTANDING
from tracer.model.frames import Symbols
from tracer.model.operations import Operation
from tracer.model.reachability import KIND_ALLOCATION, KIND_MAPPING
from tracer.model.snapshot import CRASHES, Process, Snapshot

_BREAKS = (ErrorKind.OVER_PUT, ErrorKind.USE_AFTER_ZERO, ErrorKind.DELETE_WHILE_REFERENCED)
_COUNTING = (Operation.GET, Operation.PUT)


class Evidence:
    def __init__(self, snapshot: Snapshot, symbols: Symbols, samples: int) -> None:
        self.snapshot = snapshot
        self.samples = samples
        self.stacks = SymbolizedStacks(
            snapshot.stacks, snapshot.binaries, symbols, {site.function for site in snapshot.sites if site.type},
            {site.function for site in snapshot.sites if site.type and site.operation in _COUNTING},
        )  # fmt: skip
        self.kin = KinOfTypes(self.stacks, snapshot.balanced)
        self.makers = Makers(snapshot)
        self.own_frames = OwnFrames()
        self.blocks_reached = reached(snapshot, KIND_ALLOCATION, snapshot.allocations)
        self.pieces_reached = reached(snapshot, KIND_MAPPING, snapshot.mapped, "start")
        self.ids = EntryIds(snapshot, self.stacks, self.makers, self.blocks_reached, self.pieces_reached)
        self.holders = HoldersOfEntries(snapshot, self.stacks, self.own_frames)
        self.why_unknown = why_unknown(snapshot)
        self.unseen = unseen_calls(snapshot.coverage)
        self._freed_unseen = freed_unseen(snapshot.coverage, snapshot.sites)
        self.processes: Mapping[tuple[int, int], Process] = {p.space: p for p in snapshot.processes}
        broken = _broken(snapshot)
        self._crashed = {key: p for key, p in self.processes.items() if p.signal in CRASHES and key in broken}
        """Those that crashed after their references were broken."""
        self._held_ns = {(scan.pid, scan.generation): scan.held_ns for scan in snapshot.scans}
        self._looked_into = {(scan.pid, scan.generation) for scan in snapshot.scans if scan.reason is None}

    def owner_groups(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number the entries that own, by the rows of blocks among the snapshot's allocations; 0 for -1."""
        allocations = self.snapshot.allocations
        if len(allocations) == 0 or not (owners >= 0).any():
            return np.zeros(len(owners), np.int64)
        groups = group_rows(allocations["site"][owners], allocations["stack"][owners])
        return np.where(owners >= 0, groups.label + 1, 0)

    def owner_id(self, owner: int) -> str | None:
        """Return the id of the entry of a block, by its row among the snapshot's allocations; None for -1."""
        if owner < 0:
            return None
        block = self.snapshot.allocations[owner]
        site = int(block["site"])
        return self.ids.of("allocation", self.allocator(site), int(block["stack"]), site)

    @property
    def is_judged(self) -> bool:
        """Whether the end of the trace is that of the target."""
        return self.snapshot.mode == "launched" and self.snapshot.target_ended

    def state(self, pid: int, generation: int, kind: str, allocator: str | None = None) -> str:
        """Judge what was alive in a process: "leaked" only of a launched target that ended, not by exec, and only if
        nothing was lost, and nothing went unseen, that may have ended an entry of this kind and allocator. Memory of a
        process that a signal ended is not judged unless it was read, as that of one that aborts is: what held it is not
        known. Counted objects are, by their counts, but where these were broken and a crash followed."""
        process = self.processes.get((pid, generation))
        if process is not None and process.by_exec:
            return ALIVE_AT_EXEC
        key = pid, generation
        killed = process is not None and process.signal is not None and key not in self._looked_into
        if key in self._crashed or (killed and kind != "reference"):
            return OUTSTANDING
        hidden = any(kind in loss.hides for loss in self.snapshot.losses) or (kind, allocator) in self._freed_unseen
        if self.is_judged and not hidden and process is not None and process.ended_ns is not None:
            return LEAKED
        return OUTSTANDING

    def crash_notes(self) -> tuple[str, ...]:
        """Say of which processes nothing is called leaked, since they crashed when their counts were broken."""
        return tuple(
            f"pid {pid} crashed after its references were broken, as the errors say: what was alive then is not judged"
            for pid, _ in self._crashed
        )

    def end_ns(self, pid: int, generation: int) -> int:
        """Return when the trace of a process ended: when it came to its end, or the end of the trace. That it was held
        there, to be looked into, makes nothing older."""
        process = self.processes.get((pid, generation))
        if process is None or process.ended_ns is None:
            return self.snapshot.duration_ns
        return process.ended_ns - self._held_ns.get((pid, generation), 0)

    def span(self, pid: int, generation: int) -> tuple[int, int]:
        """Return when the trace of a process began and ended, ns since the trace began."""
        process = self.processes.get((pid, generation))
        return (0 if process is None else process.started_ns), self.end_ns(pid, generation)

    def type_name(self, type_hash: int) -> str:
        return self.makers.type_name(type_hash)

    def types_in_specs(self, made_at: npt.NDArray[np.uint16]) -> set[str]:
        """Return how specs call the types of objects made at these sites; the target may have named them otherwise."""
        sites = self.snapshot.sites
        known = (sites[site] for site in distinct(made_at).tolist() if site < len(sites))
        return {site.type for site in known if site.type}

    def allocator(self, site: int) -> str | None:
        """Return the name of the allocator of a site: its type, else its function."""
        return self.makers.allocator(site)


def _broken(snapshot: Snapshot) -> frozenset[tuple[int, int]]:
    """Return pid and generation of the address spaces in which references were put, or used, that had been put."""
    errors = snapshot.errors
    rows = errors[np.isin(errors["error"], [int(kind) for kind in _BREAKS])]
    return frozenset(zip(rows["pid"].tolist(), rows["generation"].tolist(), strict=True))
