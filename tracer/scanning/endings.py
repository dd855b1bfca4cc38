"""Processes that end: each is held at its last call while its memory is read; what is lost is worked out later."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.maps import THREAD_BYTES, Maps
from tracer.model import records
from tracer.model.reachability import AT_EXEC, REACH_RECORD, Scan
from tracer.model.records import FRAME_BINARY_SHIFT
from tracer.model.snapshot import Process, Records, Snapshot
from tracer.procfs.maps import read_maps
from tracer.reachability.memory import REGION, WORD, Memory, RegionKind
from tracer.reachability.reach_records import Outstanding, reach_records
from tracer.scanning.layout import layout
from tracer.scanning.pointer_scan import PointerScan, TooMuch
from tracer.scanning.process_memory import ProcessMemory
from tracer.scanning.stopped_threads import (
    NotStopped,
    Words,
    let_go,
    stack_pointer,
    stopped_threads,
    thread_ids,
)
from tracer.spaces.processes import Space

_PATIENCE_NS = 4_000_000_000
"""Of reading: HOLD_NS of bpf/abi.h is five seconds."""
_HELD_REGISTERS = 21
"""Words of struct pt_regs."""
_ENDING_AT, _RUNNING_AT = 8, 0x1000
"""Where registers are made to stand, in the page that nothing can be mapped to."""
_LOADER = re.compile(r"ld-linux|ld-musl|ld-\d")
_KILLED = "it was killed by {}"
_WENT_ON = "it went on before its memory was read"
_UNSEEN = "its last call was not seen"
_NOTHING_MADE = "it allocated nothing itself"
_IGNORED_SIGNALS = (None, 6)
"""abort() is seen; after it comes SIGABRT."""


@dataclass(frozen=True)
class _Read:
    memory: Memory | None
    scan: Scan


class Endings:
    """Reads the memory of processes that end. `clock` turns the kernel's time into the trace's; `hindrance`: why it is
    not done, as a clause, None where it is."""

    def __init__(self, maps: Maps, clock: Callable[[int], int], hindrance: str | None) -> None:
        self._maps, self._clock, self._hindrance = maps, clock, hindrance
        self._read: dict[Space, _Read] = {}
        self._left: set[int] = set()
        """Threads that are still to be let go of."""

    def held(self, control: np.void) -> None:
        """Read the memory of a process that is held by this record."""
        space = int(control["pid"]), int(control["generation"])
        scan = Scan(*space, reason="its memory could not be read")
        memory = None
        try:
            if self._made_nothing(control):
                scan = replace(scan, reason=_NOTHING_MADE)
            else:
                memory, size = _memory_of(control, self._left)
                scan = replace(scan, reason=None, bytes_read=size)
        except (NotStopped, TooMuch) as error:
            scan = replace(scan, reason=str(error))
        except (FileNotFoundError, ProcessLookupError):
            scan = replace(scan, reason=_WENT_ON)
        now, since = time.monotonic_ns(), int(control["ticket"])
        if memory is not None and not self._is_held(control):
            memory, scan = None, replace(scan, reason=_WENT_ON)
        if memory is not None:
            memory = replace(memory, time_ns=self._clock(now))
        self._read[space] = _Read(memory, replace(scan, held_ns=max(0, now - since) if since else 0))

    def let_go(self) -> None:
        """Let go of threads that had not stopped in time; to be called often, until the trace is over."""
        if self._left:
            let_go(self._left)

    def _made_nothing(self, control: np.void) -> bool:
        """Tell whether a process has no block of its own: most forked children of shells, large ones of servers."""
        if len(thread_ids(int(control["pid"]))) != 1:
            return False
        key = np.zeros(1, records.KEY)
        key["pid"], key["generation"] = control["pid"], control["generation"]
        raw = bpf.lookup_element(self._maps.fds["SPACE_TOTALS"], key.tobytes(), records.SPACE_TOTALS.itemsize)
        if raw is not None and np.frombuffer(raw, records.SPACE_TOTALS)[0]["made"]:
            return False
        thread = bpf.lookup_element(
            self._maps.fds["THREADS"], int(control["tid"]).to_bytes(4, "little"), THREAD_BYTES
        )
        if thread is None:
            return True
        totals = np.frombuffer(thread, records.SPACE_TOTALS, 1, offset=40)[0]
        return not int(totals["made"])

    def _is_held(self, control: np.void) -> bool:
        kept = bpf.lookup_element(self._maps.fds["HOLDS"], int(control["tid"]).to_bytes(4, "little"), 24)
        return kept is not None and int.from_bytes(kept[:8], "little") == int(control["ticket"])

    def judged(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what was looked into, and the classes of what is outstanding."""
        loaders = {b.id for b in snapshot.binaries if _LOADER.match(PurePath(b.path).name)}
        found, scans = [np.zeros(0, REACH_RECORD)], []
        for process in snapshot.processes:
            space = process.pid, process.generation
            alive = _outstanding(snapshot, space, loaders)
            if not (len(alive.allocations) or len(alive.objects) or len(alive.mapped)):
                self._read.pop(space, None)
                continue
            read = self._read.pop(space, None)
            reason = self._hindrance or _why_not(process, read)
            if reason is None and read is not None and read.memory is not None:
                found.append(reach_records(read.memory, alive, free_holds=bool(snapshot.losses)))
                scans.append(replace(read.scan, blocks=len(alive.allocations)))
            else:
                scans.append(Scan(*space, reason=reason or _UNSEEN, held_ns=read.scan.held_ns if read else 0))
        return replace(snapshot, scans=tuple(scans), reach=np.concatenate(found))


def _why_not(process: Process, read: _Read | None) -> str | None:
    if process.by_exec:
        return AT_EXEC
    if process.signal not in _IGNORED_SIGNALS:
        return _KILLED.format(_signal_name(process.signal))
    return _UNSEEN if read is None else read.scan.reason


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def _outstanding(snapshot: Snapshot, space: Space, loaders: set[int]) -> Outstanding:
    def own(rows: Records) -> Records:
        of_space: Records = rows[(rows["pid"] == space[0]) & (rows["generation"] == space[1])]
        return of_space

    allocations = own(snapshot.allocations)
    stacks, of = np.unique(allocations["stack"], return_inverse=True)
    made_by_loader = [_is_first_in(snapshot, stack, loaders) for stack in stacks.tolist()]
    return Outstanding(
        allocations, own(snapshot.inherited), own(snapshot.objects), own(snapshot.mapped),
        np.array(made_by_loader, np.bool_)[of] if len(of) else np.zeros(0, np.bool_),
    )


def _is_first_in(snapshot: Snapshot, stack: int, binaries: set[int]) -> bool:
    known = snapshot.stacks.get(stack)
    return known is not None and bool(known.frames) and known.frames[0] >> FRAME_BINARY_SHIFT in binaries


def _memory_of(control: np.void, left: set[int]) -> tuple[Memory, int]:
    """Stop the other threads, and read. Raises NotStopped, TooMuch, OSError."""
    pid, thread = int(control["pid"]), int(control["parent"])
    offset = records.CONTROL.fields["path"][1]  # type: ignore[index]
    own = np.frombuffer(control.tobytes(), np.uint64, _HELD_REGISTERS, offset)
    deadline = (int(control["ticket"]) + _PATIENCE_NS) / 1e9
    memory = ProcessMemory(pid)
    try:
        with stopped_threads(pid, thread, left) as others:
            buffer = np.zeros(8, np.uint64)

            def words(address: int, count: int) -> list[int]:
                done = memory.read(address, buffer[:count])
                return [int(word) for word in buffer[: done // 8]]

            plan = layout(read_maps(pid), [stack_pointer(r) for r in others.values()], stack_pointer(own), words)
            registers, regions = _registers(own, list(others.values()))
            return PointerScan(memory, plan, deadline).run(registers, regions), memory.bytes_read
    finally:
        memory.close()


def _registers(own: Words, others: list[Words]) -> tuple[Records, Records]:
    """Return the registers as words at made-up places, and the regions of these."""
    rest = np.concatenate(others) if others else np.zeros(0, np.uint64)
    words = np.zeros(len(own) + len(rest), WORD)
    words["value"][: len(own)], words["value"][len(own) :] = own, rest
    words["at"][: len(own)] = _ENDING_AT + 8 * np.arange(len(own))
    words["at"][len(own) :] = _RUNNING_AT + 8 * np.arange(len(rest))
    regions = [(_ENDING_AT, _ENDING_AT + 8 * len(own), RegionKind.ENDING_REGISTER)]
    regions += [(_RUNNING_AT, _RUNNING_AT + 8 * len(rest), RegionKind.REGISTER)]
    return words, np.array(regions, REGION)
