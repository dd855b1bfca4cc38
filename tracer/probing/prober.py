"""Puts probes on binaries and links them to processes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from tracer.binaries.open_binaries import OpenBinary
from tracer.binaries.open_files import EXHAUSTED
from tracer.errors import NothingToProbe, TooFewFiles, UnsuitableTarget
from tracer.kernel.links import EVERY_PROCESS, Attacher, Hold
from tracer.kernel.place_events import Breakpoints
from tracer.mishaps import Mishaps
from tracer.model.preload_names import PreloadLibrary
from tracer.model.records import ControlKind
from tracer.model.snapshot import EVERY_KIND, Loss, Mapping, Unresolved
from tracer.probing.changed_code import is_changed, without_breakpoint
from tracer.probing.copied_code import Excerpt, excerpts
from tracer.probing.former_code import REPLACE, REWRITTEN, FormerCode
from tracer.probing.found_code import FoundCode
from tracer.probing.found_sites import FoundSites
from tracer.probing.holds import holds_of, is_libc, lead_further
from tracer.probing.mapping_calls import mapping_calls
from tracer.probing.preloading import Placed, Preloading
from tracer.probing.restored_code import restore_code
from tracer.probing.site_finder import SiteFinder
from tracer.probing.site_table import SiteTable, sees_ends
from tracer.probing.untraced import what_helps, why_untraced
from tracer.procfs.process import is_running, thread_ids
from tracer.spaces.mapping_tables import UnwindRows

_BEFORE_OWN_LINKS = (ControlKind.FORKED, ControlKind.EXECUTES, ControlKind.EXECUTES_AT)
"""A forked child's first step; and an exec in a child that shares its parent's memory (posix_spawn). Not the loader's
own hook for debuggers, where a breakpoint in every process would be in their way."""
_OF_EACH = (ControlKind.LOADER, ControlKind.ENDING)
"""Held at by processes that are linked already, often several at once."""
_MOST_TASKS = 8
"""Threads that have the events of a process without its first one: enough if one outlives the others."""
_OF_STARTS = (ControlKind.LOADER, ControlKind.STARTED)


class Prober:
    """Finds sites once per binary and attaches them once per process and binary."""

    def __init__(
        self, site_finder: SiteFinder, sites: SiteTable, rows: UnwindRows, attacher: Attacher, mishaps: Mishaps, *,
        follow: bool, misses_ends: Callable[[OpenBinary], None] = lambda _: None, holds_ends: bool = False,
        preload: PreloadLibrary | None = None, look: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`misses_ends` is told of binaries whose code objects end unseen; `look` is around each first look at one."""
        self.preloading = Preloading(preload)
        self._mishaps, self._follow, self._holds_ends = mishaps, follow, holds_ends
        self._site_finder, self._sites, self._rows, self._attacher = site_finder, sites, rows, attacher
        self._misses_ends, self._look = misses_ends, look
        self._holds: dict[int, list[Hold]] = {}
        self._mapping_calls: dict[int, list[tuple[int, int]]] = {}
        self._linked: dict[int, dict[int, OpenBinary]] = {}
        self._everywhere: set[int] = set()
        """Binaries whose holds stand in every process."""
        self._of_tree: dict[int, set[int]] = {}
        """Binaries whose holds a process has got, or inherited."""
        self._code, self._former = FoundCode(), FormerCode()
        self._excerpts: dict[int, list[Excerpt]] = {}
        self.without_files = 0
        """How often a process got no probes, or not all, since no more files may be opened."""

    def prepare(self, binary: OpenBinary) -> None:
        """Find a binary's sites, its holds and its unwind table."""
        if binary.id not in self._holds:
            self._holds[binary.id] = []
            with self._look():
                self._prepare(binary)

    def _prepare(self, binary: OpenBinary) -> None:
        found = None
        with self._mishaps.attempt():
            found = self._site_finder.find(binary.image, binary.version, interposes=bool(binary.interposes))
            binary.unwinders, binary.raw_calls = found.unwinders, found.raw_calls
        with self._mishaps.attempt():
            self._holds[binary.id] = holds_of(binary, ends=self._holds_ends)
            if binary.is_static or is_libc(binary):
                self._mapping_calls[binary.id] = mapping_calls(binary)
        with self._mishaps.attempt():
            if found is not None:
                self._enter(binary, found)
        if not sees_ends(binary):
            self._misses_ends(binary)
        with self._mishaps.attempt():
            self._code.note(binary, self._places(binary))
        self._rows.install(binary)

    def _enter(self, binary: OpenBinary, found: FoundSites) -> None:
        """Enter a binary's sites, but for those where the kernel has another instruction from before its file was
        rewritten: all of them, and no holds, where it has one at a place that sites need."""
        placements = found.placements
        of_sites = {at for p in placements for at in (p.file_offset, p.return_offset)}
        every = of_sites | (needed := self._places(binary))
        differing = self._former.differing(binary, every) | self._attacher.former_of_others(binary, every)
        if differing & needed:
            binary.unwinders, self._holds[binary.id], differing = (), [], of_sites
            self._mapping_calls.pop(binary.id, None)
        left_out = [p for p in placements if differing & {p.file_offset, p.return_offset}]
        self._sites.unresolved += found.unresolved
        self._sites.uncovered += found.uncovered
        self._sites.leave_out(left_out, REWRITTEN)
        self._former.left_out += len(left_out)
        self._sites.add(binary, [p for p in placements if p not in left_out])

    def withdraw(self, binary: OpenBinary) -> None:
        """Take away the probes of a binary whose file was rewritten: at its places there is other code now."""
        users = [linked for linked in self._linked.values() if linked.pop(binary.id, None) is not None]
        holders = [held for held in self._of_tree.values() if binary.id in held]
        if users or holders or binary.id in self._everywhere:
            self._misses_ends(binary)
            self._everywhere.discard(binary.id)
            for held in holders:
                held.discard(binary.id)
            self._attacher.withdraw(binary)
            if self._attacher.events.can_be_used:
                self._former.note(binary, self._code.of(binary))
            for pid in self._linked:
                restore_code(pid, binary, self._places(binary))

    def _places(self, binary: OpenBinary) -> set[int]:
        """Return where in its file a binary has probes."""
        sites = (offset for _, p in binary.placements for offset in (p.file_offset, p.return_offset))
        holds = (hold.file_offset for hold in self._holds.get(binary.id, ()))
        unwinders = (place.file_offset for place in binary.unwinders)
        return {*sites, *holds, *unwinders, *(offset for offset, _ in self._mapping_calls.get(binary.id, ()))}

    def excerpts(self, pid: int) -> list[Excerpt]:
        """Return by what copies of the code under a process's probes are told."""
        return [excerpt for binary in self.linked(pid) for excerpt in self._excerpts_of(binary)]

    def _excerpts_of(self, binary: OpenBinary) -> list[Excerpt]:
        if binary.id not in self._excerpts:
            self._excerpts[binary.id] = excerpts(binary, self._places(binary))
        return self._excerpts[binary.id]

    def probes_in(self, pid: int, binary: OpenBinary, mapping: Mapping, start: int, end: int) -> bool:
        """Tell whether a process has probes of a binary between two addresses of a mapping of it."""
        if binary.id not in self._linked.get(pid, {}):
            return False
        first = max(start, mapping.start) - mapping.start + mapping.file_offset
        last = min(end, mapping.end) - mapping.start + mapping.file_offset
        return any(first <= place < last for place in self._places(binary))

    def launches(self, pid: int, binaries: Sequence[OpenBinary]) -> None:
        """Attach to a process the probes of the program that it is going to execute, before anybody is traced."""
        with self._attacher.events.first(pid, Breakpoints.TO_COME) if self._follow else nullcontext():
            self._start(pid, binaries)

    def joins(self, pid: int, binaries: Sequence[OpenBinary]) -> None:
        """Attach to a running process the probes of what it maps, before anybody is traced."""
        has_first = self._follow and is_running(pid, pid)
        with self._attacher.events.first(pid, Breakpoints.MISSING) if has_first else nullcontext():
            self.link(pid, binaries)

    def starts(self, pid: int, binaries: Sequence[OpenBinary], tid: int | None = None) -> bool:
        """Attach to a process what it lacks of the probes of a program that it is going to execute; `tid`: by which
        thread. Return whether it will have them then."""
        if tid is not None and tid != pid and self._attacher.events.has(pid) and is_running(pid, tid):
            self._attacher.events.move(pid, [tid])
            self._linked[pid] = {}
        with self._attacher.events.expecting(pid, Breakpoints.TO_COME):
            self._start(pid, binaries)
        return tid is None or tid == pid or self._attacher.events.has(pid)

    def _start(self, pid: int, binaries: Sequence[OpenBinary]) -> None:
        for binary in binaries:
            self.prepare(binary)
        self.preloading.starts(pid, binaries)
        self._complete(pid)
        self.link(pid, binaries)

    def maps(self, pid: int, binaries: Sequence[OpenBinary]) -> None:
        """Attach to a process what it lacks of the probes of all that it maps; to claim events takes time."""
        is_missing = self.preloading.is_missing(pid, binaries)
        if is_missing or any(self._lacks(pid, binary) for binary in binaries):
            with self._attacher.events.expecting(pid, Breakpoints.MISSING):
                if is_missing:
                    self._complete(pid)
                self.link(pid, binaries)

    def _lacks(self, pid: int, binary: OpenBinary) -> bool:
        if binary.id in self._linked.get(pid, ()):
            held = self._of_tree.get(pid, ())
            return self._follow and binary.id not in held and binary.id not in self._everywhere
        return binary.id not in self._holds or bool(self._places(binary))

    def _complete(self, pid: int) -> None:
        for binary in self.linked(pid):
            self._attach(pid, binary, self.preloading.left_out(pid, binary))

    def link(self, pid: int, binaries: Iterable[OpenBinary]) -> None:
        """Attach to a process what it does not have yet; stops quietly where it is gone."""
        linked, binaries = self._linked.setdefault(pid, {}), list(binaries)
        for binary in self._guarded(pid, [b for b in binaries if b.id not in linked and self._is_fit(b)]):
            linked[binary.id] = binary
            if not self._attach(pid, binary, self.preloading.chosen(pid, binary), holds=True):
                return
        for binary in binaries if self._follow else ():
            if binary.id in linked:
                self._hold_tree(pid, binary)

    def _attach(self, pid: int, binary: OpenBinary, placed: Sequence[Placed], *, holds: bool = False) -> bool:
        """Attach sites of a binary to a process, and its holds; return whether that is still there."""
        try:
            self._attacher.attach_sites(pid, binary, placed)
            if holds:
                self._hold(pid, binary)
        except ProcessLookupError:
            return False
        except OSError as error:
            if error.errno in EXHAUSTED:
                self.without_files += 1
                return False
            self._misses_ends(binary)
            reason = f"the kernel refused the probe: {error.strerror}"
            self._sites.leave_out((p for _, p in placed), reason)
        return True

    def _is_fit(self, binary: OpenBinary) -> bool:
        """Find a binary's probes; tell whether its file still has the code that they were found in."""
        if binary.is_stale:
            return False
        self.prepare(binary)
        if self._code.is_there(binary):
            return True
        binary.is_stale = True  # rewritten since, within one tick of the file system's clock
        self.withdraw(binary)
        return False

    def _guarded(self, pid: int, binaries: list[OpenBinary]) -> list[OpenBinary]:
        """Attach what unwinds in these before any return probe, which an exception could meet; none if it is gone.

        Interpreters come first: of no event may code be known whose end was not seen.
        """
        distinct = sorted({binary.id: binary for binary in binaries}.values(), key=sees_ends, reverse=True)
        try:
            for binary in distinct:
                self._attacher.attach_unwinders(pid, binary)
        except OSError as error:
            if error.errno in EXHAUSTED:
                self.without_files += 1
            elif error.errno != errno.ESRCH:
                reason = f"the kernel refused the probes of what unwinds: {error.strerror}"
                self._sites.unresolved.append(Unresolved("unwinder", "", binary.path, reason))
            return []
        return distinct

    def _hold(self, pid: int, binary: OpenBinary) -> None:
        """Attach a binary's holds for a process; where forks are followed, but for those that its children meet too."""
        if calls := self._mapping_calls.get(binary.id):
            self._attacher.attach_watch(pid, binary, calls)
        of_tree = (ControlKind.FORKED, *(self._kinds_of_tree(binary) if self._follow else ()))
        self._attacher.attach_holds(pid, binary, [hold for hold in self._holds[binary.id] if hold.kind not in of_tree])

    def _kinds_of_tree(self, binary: OpenBinary) -> Sequence[ControlKind]:
        """Return which holds all of the tree has in common. Where an attach waits for whoever is held at that place, as
        few are attached as can be: those who are held wait for this process."""
        if binary.id in self._everywhere or not self._attacher.waits_for_the_held:
            return _BEFORE_OWN_LINKS
        return (*_BEFORE_OWN_LINKS, *_OF_EACH)

    def _hold_tree(self, pid: int, binary: OpenBinary) -> None:
        """Attach the holds that a process and its children have in common: once to whom they descend from."""
        held = self._of_tree.setdefault(pid, set())
        if binary.id in held or binary.id in self._everywhere:
            return
        holds = [hold for hold in self._holds[binary.id] if hold.kind in self._kinds_of_tree(binary)]
        try:
            self._attacher.attach_tree_holds(pid, binary, holds)
            held.add(binary.id)
        except ProcessLookupError:
            return
        except OSError as error:
            if error.errno in EXHAUSTED:
                self.without_files += 1
                return
            # no tracefs to be had
            self._everywhere.add(binary.id)
            for whose, everywhere in ((EVERY_PROCESS, True), (pid, False)):
                some = [hold for hold in holds if (hold.kind in _BEFORE_OWN_LINKS) == everywhere]
                self._attacher.attach_holds(whose, binary, some)

    def forked(
        self, parent: int, child: int, *, shares_memory: bool = False,
        placed: Iterable[tuple[Mapping, OpenBinary, int]] = (),
    ) -> None:
        """Give a child what its parent has: the kernel did so with the holds of the tree. `placed`: what it maps."""
        self._of_tree[child] = set(self._of_tree.get(parent, ()))
        self._attacher.keep_apart(child)
        self.preloading.forked(parent, child)
        if shares_memory and self._attacher.events.has(parent):
            self._attacher.events.share(child)
            self._linked[child] = {}
        elif not shares_memory and self._attacher.events.can_be_used:
            with self._attacher.events.beginning(child):
                self.link(child, self.linked(parent))
            self.renew(child, placed)  # what of others was closed before took them out of the child too
        else:
            self.link(child, self.linked(parent))

    def keep_on(self, pid: int, *, leaves: bool) -> bool:
        """Have the events of a process opened for threads that go on: its first one is held before it `leaves`, or some
        thread has ended. Return whether it may have run without probes meanwhile."""
        events = self._attacher.events
        if not events.has(pid) or (not leaves and any(is_running(pid, tid) for tid in events.tasks(pid))):
            return False
        if others := [tid for tid in sorted(thread_ids(pid)) if tid != pid and is_running(pid, tid)]:
            events.move(pid, others[:_MOST_TASKS])
            with events.expecting(pid, Breakpoints.MISSING):
                self._link_again(pid)
        return not leaves

    def renew(self, pid: int, placed: Iterable[tuple[Mapping, OpenBinary, int]]) -> None:
        """Give a process the breakpoints again that the kernel may have taken away before its events were opened.
        `placed`: what it maps."""
        events = self._attacher.events
        for mapping, binary, _ in placed if events.has(pid) else ():
            if places := without_breakpoint(pid, mapping, binary, events.kept(pid, binary.id)):
                with suppress(ProcessLookupError):
                    self._attacher.put_back(pid, binary, places)

    def _link_again(self, pid: int) -> None:
        binaries, self._linked[pid] = self.linked(pid), {}
        self.link(pid, binaries)

    def executed(self, pid: int) -> None:
        """Take it that a process has executed what `starts` was told of."""
        self._attacher.events.moved(pid)

    def gained_rights(self, pid: int) -> None:
        """The kernel took the holds of the tree from a process that exec'd a program with rights of its own."""
        self._of_tree.pop(pid, None)

    @property
    def stands_everywhere(self) -> bool:
        """Whether there are breakpoints in processes that are not traced."""
        return bool(self._everywhere)

    def holds_start(self, pid: int, binaries: Iterable[OpenBinary]) -> bool:
        """Return whether a process that has just exec'd is held where these start: in a loader, or a static program."""
        if self._follow and self._attacher.waits_for_the_held and not self._everywhere and pid not in self._of_tree:
            return False  # it has lost the loader's
        linked = self._linked.get(pid, {})
        starters = [b for b in binaries if b.is_loader or (b.is_static and not b.image.soname and not b.is_vdso)]
        return all(b.id in linked or not any(hold.kind in _OF_STARTS for hold in holds_of(b)) for b in starters)

    def check_code(self, pid: int, placed: Iterable[tuple[Mapping, OpenBinary, int]]) -> None:
        """Raise UnsuitableTarget where a process has changed code that is to be probed."""
        for mapping, binary, _ in placed:
            self.prepare(binary)
            if is_changed(pid, mapping, binary, self._places(binary)):
                raise UnsuitableTarget(
                    f"process {pid} has changed code of {binary.path} in its memory: a probe there would crash it",
                    "trace the program from its start, with --exec",
                )

    def check(self, name: str, binaries: Sequence[OpenBinary]) -> None:
        """Raise NothingToProbe where these have no site, and nothing that would tell of what comes later."""
        holds = (hold for binary in binaries for hold in self._holds.get(binary.id, ()))
        if binaries and self._former.left_out and not self._sites.count:
            raise NothingToProbe(f"nothing to probe in {name}: {REWRITTEN}", REPLACE)
        if binaries and not self._sites.count and not lead_further(holds):
            raise NothingToProbe(f"nothing to probe in {name}: {why_untraced(binaries)}", what_helps(binaries))

    def leave(self, pid: int) -> None:
        """Take all probes out of a process that goes on. What it inherited is only to be had out of all of the tree:
        the others get theirs anew."""
        if not any((self._linked.pop(pid, None), self._of_tree.pop(pid, None))):
            return
        self._attacher.leave(pid)
        for other in list(self._of_tree):
            self._of_tree[other].clear()
            self.link(other, self.linked(other))

    def linked(self, pid: int) -> list[OpenBinary]:
        """Return the binaries whose probes a process has."""
        return list(self._linked.get(pid, {}).values())

    def forget(self, pid: int) -> None:
        """Detach from a process that ended."""
        self._of_tree.pop(pid, None)
        self.preloading.forget(pid)
        self.detach(pid)

    def detach(self, pid: int) -> None:
        """Take it that the kernel has forgotten the probes of a process."""
        self._linked.pop(pid, None)
        self._attacher.detach(pid)

    @property
    def losses(self) -> Iterator[Loss]:
        if self.without_files:
            reason = "process without probes: no more files may be opened"
            yield Loss(reason, self.without_files, TooFewFiles.hint, EVERY_KIND)
        yield from self._former.losses
