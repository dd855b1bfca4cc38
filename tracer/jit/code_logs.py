"""The logs of all JITs, read as they grow, and the names that they give to frames in no binary.

A JIT writes its log when it likes, and nobody is held for it. So each entry and each frame has two times between which
it came, and a frame is named only where these leave no choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tracer.binaries.open_binaries import OpenBinary
from tracer.jit.beam_image import BeamFunction
from tracer.jit.code_log import Found, GeneratedFunction
from tracer.jit.followed_logs import FollowedLogs
from tracer.jit.function_names import read_name
from tracer.jit.seen_frames import SeenFrames
from tracer.jit.temporary_folders import TemporaryFolders
from tracer.mishaps import Mishaps
from tracer.model.addresses import Range, Space
from tracer.model.generated import GeneratedFrame
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.procfs.process import credentials
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.listener import Moment, SpaceListener

_MOST_LOOKS = 128
"""Pieces of a log that are read while someone is held for it, 32 MB: the rest comes when nobody waits."""


class CodeLogs(SpaceListener):
    """`read_stacks` takes all stacks out of their ring: those that are older than what a log says next."""

    def __init__(
        self, spaces: Spaces, seen: SeenFrames, read_stacks: Callable[[], None], mishaps: Mishaps
    ) -> None:
        self._spaces, self._seen, self._read_stacks, self._mishaps = spaces, seen, read_stacks, mishaps
        self._folders = TemporaryFolders()
        self._living: dict[Space, FollowedLogs] = {}
        self._all: dict[Space, FollowedLogs] = {}

    def began(self, space: Space, moment: Moment) -> None:
        self._follow(space)

    def executed(self, before: Space | None, space: Space, moment: Moment) -> None:
        self._follow(space, before)

    def mapped(self, space: Space, binaries: Sequence[OpenBinary], moment: Moment) -> None:
        self.settle(space)

    def _follow(self, space: Space, before: Space | None = None) -> None:
        """Follow a new address space; `before`: the one that an exec ended."""
        who = credentials(space[0])
        if who is None:
            return
        logs = FollowedLogs(space[0], who, self._folders.take(space[0]), time.monotonic_ns())
        if before in self._all:
            logs.passed = self._all[before].position()
        self._living[space] = self._all[space] = logs

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Follow a forked child, whose code is its parent's at first. Where a log tells of that code, the child's own
        gets a number of its own: what either writes from now on is true of itself alone."""
        self._follow(child)
        if child in self._living and parent in self._all and self._all[parent].has_any:
            logs = self._living[child]
            logs.parent, logs.began_ns = self._all[parent], moment.kernel_ns
            self._spaces.renumber(child)

    def ended(self, space: Space, moment: Moment) -> None:
        """Read the rest of what an address space wrote."""
        logs = self._living.pop(space, None)
        if logs is None:
            return
        logs.open_map()
        while self._read(space, logs):  # it gives up what is too long
            pass
        logs.close()
        if logs.folder is not None:
            self._folders.give_back(logs.folder)

    def settle(self, space: Space) -> None:
        """Read all that a process has written so far, while it is held."""
        logs = self._living.get(space)
        if logs is not None:
            self._read_stacks()
            self._open_map(space, logs)
            self._read_all(space, logs)

    def find_dump(self, space: Space) -> None:
        """Look for a jitdump among the mappings of a process, which have just been read."""
        logs = self._living.get(space)
        if logs is not None:
            logs.open_dump(self._spaces.last_read)

    def poll(self) -> None:
        """Read what is new, a piece of each log; the stacks have just been read."""
        changed = self._folders.changed() if self._living else set()
        for space, logs in list(self._living.items()):
            if logs.folder in changed:
                self._open_map(space, logs)
            if logs.is_open:
                self._read(space, logs)
        if self._seen.fresh:
            self._look_at_fresh()

    def _open_map(self, space: Space, logs: FollowedLogs) -> None:
        number = self._spaces.anonymous_id(space)
        if logs.open_map() and self._spaces.owner_of.get(number) != space:
            self._spaces.renumber(space)  # a forked child's that had its parent's until now

    def _read_all(self, space: Space, logs: FollowedLogs) -> None:
        for _ in range(_MOST_LOOKS):
            if not self._read(space, logs):
                break

    def _read(self, space: Space, logs: FollowedLogs) -> bool:
        more = False
        with self._mishaps.attempt():
            replaced, more = logs.read(time.monotonic_ns())
            if replaced and space in self._living:
                self._renumber_seen(space, ((old.start, old.end) for old in replaced))
        return more

    def tell(self, space: Space, functions: Iterable[BeamFunction]) -> None:
        """Hear of code, in the order in which it comes, from elsewhere than a log, while its thread is held: what is
        seen from now on is in it, and has another number where there was other code before."""
        logs = self._living.get(space)
        if logs is None:
            return
        self._read_stacks()
        now = time.monotonic_ns()
        new = [GeneratedFunction(f.start, f.end, f.name, now, now, f.places) for f in functions]
        replaced = [old for function in new for old in logs.dump_log.add(function)]
        if replaced and not self._spaces.renumber(space):
            self._renumber_seen(space, ((old.start, old.end) for old in replaced))

    def forget(self, space: Space, ranges: Iterable[Range]) -> None:
        """Hear that code is no longer there, without a line in a log."""
        self._read_stacks()
        self._renumber_seen(space, ranges)

    def _renumber_seen(self, space: Space, ranges: Iterable[Range]) -> None:
        """Give new frames another number if any was seen in code that is no longer there."""
        number = self._spaces.anonymous_id(space)
        keys = [key for start, end in ranges for key in self._seen.between(number, start, end)]
        if keys and not self._spaces.renumber(space):
            self._doubt(keys)

    def _doubt(self, keys: Iterable[int]) -> None:
        """Let frames have been met at any time until now: the same key may mean other code from now on."""
        now = time.monotonic_ns()
        self._seen.first.update({key: (self._seen.first[key][0], now) for key in keys})

    def _look_at_fresh(self) -> None:
        """Give what is new and doubtful another number, so that it does not stay so."""
        fresh, self._seen.fresh = self._seen.fresh, []
        by_number: dict[int, list[int]] = {}
        for key in fresh:
            by_number.setdefault(key >> FRAME_BINARY_SHIFT, []).append(key)
        for space, logs in self._living.items():
            keys = by_number.get(self._spaces.anonymous_id(space), ())
            if logs.has_any and any(self._find(key, logs).candidates for key in keys):
                self._spaces.renumber(space)

    def _find(self, key: int, logs: FollowedLogs) -> Found:
        address = key & FRAME_ADDRESS_MASK
        after, until = self._seen.first[key]
        after = max(after, self._spaces.born_ns[key >> FRAME_BINARY_SHIFT])
        return logs.find(address if key & FRAME_EXACT else address - 1, after, until)

    def frames(self) -> Iterator[tuple[int, GeneratedFrame]]:
        """Yield what is known of each frame in no binary that a stack goes through."""
        for key in self._seen.first:
            space = self._spaces.owner_of.get(key >> FRAME_BINARY_SHIFT)
            if space not in self._all:
                continue
            found = self._find(key, self._all[space])
            if found.function is not None:
                yield key, _frame(found.function, key)
            elif found.candidates:
                why = f"code was replaced here: {' or '.join(found.candidates[:2])}"
                yield key, GeneratedFrame(None, why_unknown=why)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for logs in self._all.values() for note in logs.notes)

    @property
    def lost(self) -> int:
        return sum(logs.map_log.lost + logs.dump_log.lost for logs in self._all.values())

    def close(self) -> None:
        for logs in self._living.values():
            logs.close()
        self._folders.close()


def _frame(function: GeneratedFunction, key: int) -> GeneratedFrame:
    address = key & FRAME_ADDRESS_MASK
    name = read_name(function.name or "")
    place = function.place_of(address if key & FRAME_EXACT else address - 1)
    frame = GeneratedFrame(name.function, name.file, None, name.language, address - function.start)
    return frame if place is None else replace(frame, file=place[0], line=place[1])
