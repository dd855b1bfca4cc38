"""Processes that end are held at their last call while their memory is read, those that run on are stopped for it; what
is lost is worked out later."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from tracer.kernel.kernel_records import OldBlock
from tracer.kernel.known_threads import is_held, thread_head
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.addresses import Space
from tracer.model.reachability import NOT_STOPPED, Scan
from tracer.model.records import ControlKind
from tracer.model.snapshot import Process, Records, Snapshot
from tracer.procfs.maps import read_maps
from tracer.procfs.process import has_one_thread, thread_ids
from tracer.procfs.tracers import tracer_of
from tracer.reachability.memory import STORAGE, Memory
from tracer.scanning.judging import judged
from tracer.scanning.kernel_words import kernel_words, with_kernel_words
from tracer.scanning.layout import FindStorage, Layout, layout
from tracer.scanning.outstanding import Heaps
from tracer.scanning.own_blocks import has_blocks
from tracer.scanning.pointer_scan import PointerScan, TooMuch, check_mapped
from tracer.scanning.process_memory import ProcessMemory
from tracer.scanning.reasons import NOTHING_MADE, UNREADABLE, WENT_ON
from tracer.scanning.register_words import register_words, thread_rows
from tracer.scanning.resident_pages import ResidentPages, read_resident
from tracer.scanning.running_reads import MOST_SECONDS, read_running, registers_of, was_asleep
from tracer.scanning.space_read import SpaceRead
from tracer.scanning.stopped_threads import NotStopped, Words, let_go, stack_pointer, stopped_threads
from tracer.scanning.surroundings import ModuleTable
from tracer.scanning.thread_stacks import DumpedWalk, MakeWalk, dumped_walks

_PATIENCE_NS = 4_000_000_000
"""Of reading: who is held goes on after five seconds, unless the user wants something else."""
_HELD_SECONDS = 3.0
"""So long may one be read again and again that is held for it."""


class Endings:
    """Reads the memory of processes that end. `clock` turns the kernel's time into the trace's; `hindrance`: why it is
    not done, as a clause, None where it is; `has_told`: whether events came from a space, of mappings or objects."""

    def __init__(
        self, maps: Maps, clock: Callable[[int], int], hindrance: str | None, make_walk: MakeWalk,
        has_told: Callable[[Space], bool], find_storage: FindStorage,
    ) -> None:  # fmt: skip
        self._maps, self._clock, self._hindrance, self._make_walk = maps, clock, hindrance, make_walk
        self._has_told, self._find_storage = has_told, find_storage
        self.stops = True
        """Else processes are read while they run, as those are that another process traces."""
        self.most_bytes: int | None = None
        """Who has more to be read is not looked into."""
        self._read: dict[Space, SpaceRead] = {}
        """Of those that run on."""
        self._last: dict[Space, SpaceRead] = {}
        """Of those that came to a last call: some go on from abort()."""
        self._unsettled: list[ResidentPages] = []
        self._left: set[int] = set()
        """Threads that are still to be let go of."""
        self._standing: set[int] = set()
        """Processes that are stopped, or about to be."""
        self._put_off: list[bytes] = []
        """Records of those of them that have come to their last call."""

    def held(self, control: np.void) -> None:
        """Read the memory of a process that is held by this record at its last call."""
        self._keep(control, self._memory_of_held)

    def executes(self, control: np.void) -> None:
        """Read the memory of a process that is held by this record where it is about to execute a program."""
        self._keep(control, self._memory_at_exec)

    def _keep(self, control: np.void, read_memory: Callable[[np.void], SpaceRead]) -> None:
        space = int(control["pid"]), int(control["generation"])
        self._last[space] = SpaceRead(None, Scan(*space, reason=UNREADABLE))  # so it stays if what follows goes wrong
        try:
            if self._made_nothing(control):
                read = SpaceRead(None, Scan(*space, reason=NOTHING_MADE))
            else:
                read = read_memory(control)
        except (NotStopped, TooMuch) as error:
            read = SpaceRead(None, Scan(*space, reason=str(error)))
        except (FileNotFoundError, ProcessLookupError):
            read = SpaceRead(None, Scan(*space, reason=WENT_ON))
        now, since = time.monotonic_ns(), int(control["ticket"])
        if read.memory is not None and not is_held(self._maps, control):
            read = SpaceRead(None, Scan(*space, reason=WENT_ON))
        scan = replace(read.scan, held_ns=max(0, now - since) if since else 0)
        self._unsettled += [read.pages] if read.pages is not None else []
        self._last[space] = replace(read, scan=scan, is_at_exec=control["kind"] != ControlKind.ENDING)

    def settle(self) -> None:
        """Work out what can wait until those that were held go on."""
        while self._unsettled:
            self._unsettled.pop().settle()

    def let_go(self) -> None:
        """Let go of threads that had not stopped in time; to be called often, until the trace is over."""
        if self._left:
            let_go(self._left)

    def _made_nothing(self, control: np.void) -> bool:
        """Tell whether a process has nothing of its own: most forked children of shells, large ones of servers."""
        space = int(control["pid"]), int(control["generation"])
        made = has_blocks(self._maps, space, int(control["tid"])) or self._has_told(space)
        return not made and has_one_thread(space[0])

    def look_into(
        self, spaces: Iterable[Space], freeze: Callable[[], None], serve: Callable[[], None],
        then: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Read the memory of processes that run on: all are stopped, `freeze` takes the counts, and each goes on as
        soon as it is read; with `then`, once that has returned, after which nothing is kept of what was read.

        `serve` answers those that are held; it is called while threads are waited for.
        """
        spaces = list(spaces)
        if self._hindrance:
            if then is not None:
                freeze()
                then()
            return
        stops: list[tuple[Space, int, ExitStack, dict[int, Words]]] = []
        running = {space: why for space in spaces if (why := self._why_running(space[0])) is not None}
        try:
            for space, why in running.items():
                self._look_at_running(space, why, serve)
            for space in spaces:
                if space not in running:
                    self._stop(space, stops, serve)
            freeze()
            if then is None:  # else it runs on until its blocks are read, and may free some
                self._note_what_ran()
            now = time.monotonic_ns()
            for space, began, stop, others in stops:
                self._read[space] = SpaceRead(None, Scan(*space, reason=UNREADABLE))
                self._read[space] = replace(self._look(space, others, now), since_ns=began)
                if then is None:
                    stop.close()
                    self._note_held([space])
            if then is not None:
                then()
        finally:
            if then is not None:
                for space in spaces:
                    self._read.pop(space, None)
            for _, _, stop, _ in stops:
                stop.close()
            self._standing.clear()

    def _why_running(self, pid: int) -> str | None:
        """Return why a process is read while it runs, as a clause; None where it is stopped."""
        tracer = tracer_of(pid)
        return f"{tracer} traces it" if tracer is not None else None if self.stops else NOT_STOPPED

    def _look_at_running(self, space: Space, why: str, serve: Callable[[], None]) -> None:
        try:
            read = self._read_running(space, 0, np.zeros(0, np.uint64), why, serve)
        except (TooMuch, OSError) as error:
            reason = str(error) if isinstance(error, TooMuch) else UNREADABLE
            read = SpaceRead(None, Scan(*space, reason=reason, why_running=why))
        self._read[space] = read

    def _read_running(
        self, space: Space, thread: int, own: Words, why: str, serve: Callable[[], None], seconds: float = MOST_SECONDS
    ) -> SpaceRead:
        """Read a process that runs on, but for `thread`, held, with its registers. Raises TooMuch, OSError."""
        memory = ProcessMemory(space[0])
        plan = Layout((), (), (), ())

        def make_pass(others: dict[int, Words], away: Collection[int]) -> Memory:
            nonlocal plan
            now = time.monotonic_ns()
            unsure = [stack_pointer(words) for tid, words in others.items() if tid not in away]
            found, plan = self._scan(memory, space, own, others, now, unsure)
            return replace(found, time_ns=self._clock(now), threads=thread_rows(thread, own, others))

        try:
            read = read_running(space[0], thread, make_pass, serve, seconds)
            standing = [own] if len(own) else []
            standing += read.registers.values() if read.asleep is not None else ()
            walks = dumped_walks(memory, space, standing, self._make_walk)
            scan = Scan(*space, bytes_read=memory.bytes_read, why_running=why, passes=read.passes)
            return SpaceRead(read.memory, scan, walks, True, pages=read_resident(space[0], plan), running=read)
        finally:
            memory.close()

    def _note_what_ran(self) -> None:
        """Note of processes that all slept while they were read, and sleep still, that they were as if stopped."""
        for space, read in self._read.items():
            if read.running is not None and was_asleep(read.running, space[0]):
                self._read[space] = replace(read, is_unsettled=self._is_unsettled(read.running.registers))

    def _stop(
        self, space: Space, stops: list[tuple[Space, int, ExitStack, dict[int, Words]]], serve: Callable[[], None]
    ) -> None:
        def answer() -> None:
            serve()
            if any(_control(blob)["pid"] == space[0] for blob in self._put_off):
                raise NotStopped("it was about to end")

        began, stop = time.monotonic_ns(), ExitStack()
        self._standing.add(space[0])
        try:
            others = stop.enter_context(stopped_threads(space[0], 0, self._left, answer))
            stops.append((space, began, stop, others))
        except (NotStopped, OSError) as error:
            stop.close()
            self._standing.discard(space[0])
            self._read[space] = SpaceRead(None, Scan(*space, reason=str(error)))

    def put_off(self, blobs: Iterable[bytes]) -> list[bytes]:
        """Return those records of the control ring that can be handled now: the last calls of processes that are
        being stopped wait until they go on, and come first then."""
        if not self._standing and not self._put_off:
            return list(blobs)
        kept = [] if self._standing else self._put_off
        if not self._standing:
            self._put_off = []
        for blob in blobs:
            control = _control(blob)
            waits = control["kind"] == ControlKind.ENDING and int(control["pid"]) in self._standing
            (self._put_off if waits else kept).append(blob)
        return kept

    def were_let_go(self, reason: str | None = None) -> None:
        """Note that the processes that were stopped are about to go on; or why nothing is known of them."""
        self._note_held(list(self._read))
        if reason is not None:
            self._read = {space: SpaceRead(None, replace(r.scan, reason=reason)) for space, r in self._read.items()}

    def _note_held(self, spaces: Iterable[Space]) -> None:
        now = time.monotonic_ns()
        for space in spaces:
            read = self._read[space]
            held = now - read.since_ns if read.since_ns else read.scan.held_ns
            self._read[space] = replace(read, scan=replace(read.scan, held_ns=held))

    def _look(self, space: Space, others: dict[int, Words], now: int) -> SpaceRead:
        try:
            if not others:
                return SpaceRead(None, Scan(*space, reason="it has no thread"))
            nothing = np.zeros(0, np.uint64)
            memory, size, walks, pages = self._memory_of(space, 0, nothing, others, now)
            unsettled = self._is_unsettled(others)
            scan = Scan(*space, bytes_read=size)
            return SpaceRead(memory, scan, walks, unsettled, pages=pages)
        except (TooMuch, OSError) as error:
            return SpaceRead(None, Scan(*space, reason=str(error) if isinstance(error, TooMuch) else UNREADABLE))

    def _is_unsettled(self, threads: Iterable[int]) -> bool:
        """Tell whether one of these threads is inside of a realloc: the old block is not alive any more then, and the
        new one not yet, while one of them holds what the program keeps there."""
        for tid in threads:
            thread = thread_head(self._maps, tid)
            if thread is not None and thread["pending"]["slot"] and thread["pending"]["had_old"] != OldBlock.NONE:
                return True
        return False

    def _memory_of(
        self, space: Space, thread: int, own: Words, others: dict[int, Words], since_ns: int
    ) -> tuple[Memory, int, list[DumpedWalk], ResidentPages | None]:
        """Read while all threads stand: `thread`, held, with its registers, and the others. Raises TooMuch, OSError."""
        stood_ns = time.monotonic_ns()  # what is made once they are let go was not to be seen
        memory = ProcessMemory(space[0])
        try:
            found, plan = self._scan(memory, space, own, others, since_ns)
            standing = [own, *others.values()] if len(own) else list(others.values())
            walks = dumped_walks(memory, space, standing, self._make_walk)
            pages = read_resident(space[0], plan)
            found = replace(found, time_ns=self._clock(stood_ns), threads=thread_rows(thread, own, others))
            return found, memory.bytes_read, walks, pages
        finally:
            memory.close()

    def _scan(
        self, memory: ProcessMemory, space: Space, own: Words, others: dict[int, Words], since_ns: int,
        unsure: Collection[int] = (),
    ) -> tuple[Memory, Layout]:  # fmt: skip
        """Read once. `unsure`: stack pointers that may be elsewhere by now. Raises TooMuch, OSError."""
        ending = stack_pointer(own) if len(own) else 0
        stacks = [stack_pointer(r) for r in others.values()]
        entries, words = read_maps(space[0]), memory.words_by_page()
        check_mapped((entry.start, entry.end) for entry in entries if entry.readable and not entry.inode)
        plan = layout(entries, stacks, ending, words, touched=memory.touched, unsure=unsure)
        registers, regions = with_kernel_words(*register_words(own, list(others.values())), kernel_words(space[0]))
        deadline = (since_ns + _PATIENCE_NS) / 1e9
        found = PointerScan(memory, plan, deadline, self.most_bytes).run(registers, regions)
        return replace(found, allocator_storage=np.array(self._find_storage(entries, words), STORAGE)), plan

    def _memory_of_held(self, control: np.void) -> SpaceRead:
        """Stop the other threads, and read. Raises NotStopped, TooMuch, OSError."""
        pid, thread = int(control["pid"]), int(control["ending"]["thread"])
        own = control["ending"]["registers"]
        space = pid, int(control["generation"])
        why = self._why_running(pid) if not has_one_thread(pid) and len(thread_ids(pid)) > 1 else None
        if why is not None:
            read = self._read_running(space, thread, own, why, lambda: None, _HELD_SECONDS)
            asleep = read.running is not None and was_asleep(read.running, pid)
            return replace(read, is_unsettled=not asleep or self._is_unsettled(thread_ids(pid)))
        with stopped_threads(pid, thread, self._left) as others:
            memory, size, walks, pages = self._memory_of(space, thread, own, others, int(control["ticket"]))
            return SpaceRead(memory, Scan(*space, bytes_read=size), walks, self._is_unsettled(others), pages=pages)

    def _memory_at_exec(self, control: np.void) -> SpaceRead:
        """Stop the other threads, and read, in half the time; the one that is held goes on with all of its registers.
        Raises NotStopped, TooMuch, OSError."""
        pid, thread = int(control["pid"]), int(control["thread"])
        space, own = (pid, int(control["generation"])), registers_of(thread)
        why = self._why_running(pid) if not has_one_thread(pid) and len(thread_ids(pid)) > 1 else None
        if why is not None or own is None:
            raise NotStopped(why or "what it has in registers could not be read")
        with stopped_threads(pid, thread, self._left) as others:
            since_ns, standing = int(control["ticket"]) - _PATIENCE_NS // 2, {thread: own, **others}
            memory, size, walks, pages = self._memory_of(space, 0, np.zeros(0, np.uint64), standing, since_ns)
            return SpaceRead(memory, Scan(*space, bytes_read=size), walks, self._is_unsettled(others), pages=pages)

    def _of(self, process: Process) -> SpaceRead | None:
        """Take what was read: while it ran on, where it did when the trace ended, else at its last call."""
        space = process.space
        looked, last = self._read.pop(space, None), self._last.pop(space, None)
        if last is not None and last.is_at_exec and not process.by_exec:
            last = None
        return looked if last is None or (looked is not None and looked.memory is not None) else last

    def judged(
        self, snapshot: Snapshot, freed: Records, modules: ModuleTable, heaps: Heaps | None = None
    ) -> Snapshot:  # fmt: skip
        """Return the snapshot with what `judging.judged` finds in what was read. Once: it is kept no longer."""
        reads = [self._of(process) for process in snapshot.processes]
        return judged(snapshot, reads, freed, modules, self._hindrance, heaps)


def _control(blob: bytes) -> np.void:
    control: np.void = np.frombuffer(blob, records.CONTROL, 1)[0]
    return control
