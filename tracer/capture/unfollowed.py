"""Unfollowed lives: processes, and parts of what they did, that ran without probes, by reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracer.binaries.foreign import why_foreign
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.addresses import Space
from tracer.model.snapshot import EVERY_KIND, Loss

_SPAWN_FAILED = 127 << 8
"""How posix_spawn's child ends that cannot do what it is to do before its exec (sysdeps/unix/sysv/linux/spawni.c)."""


class Unfollowed:
    """`can_hold`: whether this kernel can hold a process until its probes are in place."""

    def __init__(self, *, can_hold: bool) -> None:
        self._can_hold = can_hold
        self.children: list[int] = []
        """Forked children that ran on without being held; 0 for one that shares its maker's memory."""
        self._arrived: dict[int, bool] = {}
        """Forked children with memory of their own that live: whether they were seen to be held."""
        self._sharing: set[int] = set()
        """Children that share their maker's memory, and were not held at their first step or an exec so far."""
        self.programs: list[int] = []
        """Processes that executed a program without its loader's, or if static its own, first step being held."""
        self.with_rights: list[int] = []
        """The same, of a program with rights of its own: the kernel takes the breakpoints that they inherited."""
        self.lapses = 0
        """Processes that ran on without probes, for a moment or for good, when their first thread had ended."""
        self.copies = 0
        """Breakpoints that a process had copied with probed code, and that were made good."""
        self.translated: set[Space] = set()
        """Processes in which a program runs another one's code by translating it: they have no probes."""
        self.dispatching: set[Space] = set()
        """Processes that turn system calls into signals, those that end a return probe too: they lost their probes."""
        self.patching: set[Space] = set()
        """Processes that write to probed code, over breakpoints too, and their children: they lost their probes."""
        self.debugged: set[Space] = set()
        """Processes that a debugger runs, and their children: they have no probes, which would take its breakpoints."""
        self.foreign: dict[Space, str] = {}
        """Processes whose program is of another kind than those that can be probed: why, as a clause."""
        self._next: dict[int, str] = {}
        """The same of the program that a process is about to execute: a short one is gone before it is looked at."""

    def forked(self, child: int, *, shares_memory: bool) -> None:
        if not self._can_hold:
            self.children.append(0 if shares_memory else child)
        elif shares_memory:
            self._sharing.add(child)
        else:
            self._arrived[child] = False

    def arrives(self, child: int) -> None:
        """A child is at its first step, held or not."""
        self._sharing.discard(child)
        self._arrived[child] = True

    def leaves_maker(self, child: int, is_probed: Callable[[], bool]) -> None:
        """A child executes a program. Where it was not held, and had probes, it may have run before it had all; not one
        that shares its maker's memory: those of posix_spawn do nothing before that."""
        self._sharing.discard(child)
        if not self._arrived.pop(child, True) and is_probed():
            self.children.append(child)

    def begins_debugged(self, space: Space, debugger: str) -> None:
        self.debugged.add(space)
        self.foreign[space] = f"{debugger} runs it, and would lose breakpoints where probes are: trace it without that"

    def exits(self, child: int, wait_status: int) -> None:
        if not self._arrived.pop(child, True):
            self.children.append(child)
        if child in self._sharing and wait_status != _SPAWN_FAILED:
            self.children.append(0)
        self._sharing.discard(child)

    def executes(self, pid: int, path: str) -> None:
        """A process is about to execute a program at a path of ours; empty where that can be probed."""
        self._next.pop(pid, None)
        if path and (why := why_foreign(path)):
            self._next[pid] = why

    def begins(self, space: Space, binaries: Sequence[OpenBinary], *, with_rights: bool) -> None:
        """A process has begun a program without being held, and maps these. `with_rights`: it has rights of its own."""
        executed = self._next.pop(space[0], None)
        if not binaries and (why := why_foreign(f"/proc/{space[0]}/exe") or executed):
            self.foreign[space] = why
        elif with_rights:
            self.with_rights.append(space[0])
        else:
            self.programs.append(space[0])

    def is_left(self, space: Space) -> bool:
        """Tell whether a process must have no probes."""
        return any(space in some for some in (self.translated, self.dispatching, self.patching, self.debugged))

    @property
    def losses(self) -> Iterator[Loss]:
        cannot = "this kernel cannot hold it (Linux 6.0 can)"
        if self.children:
            why = "it was not made by fork() or vfork()" if self._can_hold else cannot
            reason = f"child that was not traced from its start: {why}"
            yield Loss(reason, len(self.children), "none", pids=_each(self.children))
        if self.programs:
            why = "its exec was not seen, or is of a kind unknown here" if self._can_hold else cannot
            reason = f"program that was not traced from its start: {why}"
            yield Loss(reason, len(self.programs), "none", pids=_each(self.programs))
        if self.with_rights:
            reason = "program that was not traced from its start: it has rights of its own (setuid, setgid)"
            yield Loss(reason, len(self.with_rights), "none", pids=_each(self.with_rights))
        if self.lapses:
            reason = "process that ran on without all of its probes, when its first thread had ended before others"
            yield Loss(reason, self.lapses, "none", EVERY_KIND)
        if self.translated:
            reason = "program that another one translates (valgrind, qemu-user): nothing in it was traced"
            pids = _processes(self.translated)
            yield Loss(reason, len(pids), "trace it without the other", pids=pids)
        if self.dispatching:
            reason = "process that dispatches its own system calls (as Wine does): not traced from then on"
            pids = _processes(self.dispatching)
            yield Loss(reason, len(pids), "none", EVERY_KIND, pids)
        if self.patching:
            reason = "process that patches its own code, where probes were: not traced from then on"
            pids = _processes(self.patching)
            yield Loss(reason, len(pids), "none", EVERY_KIND, pids)
        if self.copies:
            reason = (
                "start of a probed function that the program copied and runs elsewhere: calls through it are not seen"
            )
            yield Loss(reason, self.copies, "none", EVERY_KIND)


def _each(pids: Iterable[int]) -> tuple[int, ...]:
    """Return the processes, none where one of them is not known."""
    distinct = set(pids)
    return () if 0 in distinct else tuple(sorted(distinct))


def _processes(spaces: set[Space]) -> tuple[int, ...]:
    return _each(pid for pid, _ in spaces)
