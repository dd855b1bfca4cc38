"""Stacks that the unwinder in BPF had to cut: walked to their end from a dump of registers and memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tracer.binaries.open_binaries import OpenBinary
from tracer.cfi.fde_index import FrameIndex
from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model.addresses import Range, Space
from tracer.model.records import (
    DUMPS_FUTILE,
    FRAME_ADDRESS_MASK,
    FRAME_BINARY_SHIFT,
    FRAME_EXACT,
    StackStatus,
)
from tracer.model.snapshot import Stack
from tracer.procfs.maps import MapsEntry
from tracer.spaces.address_spaces import PlacedFile, Spaces
from tracer.unwinding.dwarf_unwinder import DwarfUnwinder, Walked
from tracer.unwinding.stack_dump import StackDump

_FUTILE = 4
"""After so many dumps that led no further, no more are wanted of stacks that were cut in the same code."""
_MOST_LOOKS = 64
"""In one address space."""
_PAGE_BYTES = 4096
_STACK_GROWS = 8 << 20
"""Below where it began when the mappings were read: nothing else is mapped there."""


class StackCompletion:
    """Walks dumps as they come, and gives the result out when the stack itself comes.

    `look_again` reads the mappings of an address space anew, for code that was not known to be there, and returns
    them; none where it has ended.
    """

    def __init__(self, maps: Maps, spaces: Spaces, look_again: Callable[[Space], Sequence[MapsEntry]]) -> None:
        self._maps, self._spaces, self._look_again = maps, spaces, look_again
        self._indexes: dict[int, FrameIndex] = {}
        self._waiting: list[tuple[StackDump, DwarfUnwinder]] = []
        self._walked: dict[int, tuple[int, Walked]] = {}
        self.places: dict[int, tuple[int, ...]] = {}
        """Of the stacks that were walked further: the stack pointers of their frames, as the kernel side keeps them."""
        self._futile: Counter[int] = Counter()
        self.has_dumps = False
        """Stacks of the same frames may have several numbers."""
        self._looked_for: dict[Space, list[Range]] = {}
        """Where code was that was not known, as far as it is in no file."""
        self._data: dict[Space, list[Range]] = {}
        """What of that is no code."""

    def add(self, blobs: Iterable[bytes]) -> None:
        """Take records of the dump ring, with the mappings as they are: before any change that came later is made.

        They are walked later, since somebody may be held meanwhile.
        """
        for blob in blobs:
            self.has_dumps = True
            dump = StackDump.read(blob)
            self._waiting.append((dump, self.unwinder(dump)))

    def unwinder(self, dump: StackDump) -> DwarfUnwinder:
        """Return the walk of a dump, with the mappings as they are."""
        return DwarfUnwinder(dump, _Code(self, dump.space).find, self._index_of, self._spaces.anonymous_id(dump.space))

    def walk(self, mishaps: Mishaps) -> None:
        """Walk the dumps that were taken."""
        waiting, self._waiting = self._waiting, []
        for dump, walk in waiting:
            with mishaps.attempt():
                walked = walk.run()
                if walked is not None:
                    self._walked[dump.id] = dump.cut, walked

    def completed(self, number: int, stack: Stack) -> Stack:
        """Return a stack as far as it could be walked: at least as far as it came from the kernel side."""
        return self._without_data(self._walked_on(number, stack))

    def _walked_on(self, number: int, stack: Stack) -> Stack:
        cut, walked = self._walked.pop(number, (0, None))
        if walked is None:
            return self._without_guesses(stack) if stack.status is StackStatus.FRAME_POINTER else stack
        ours = walked.stack
        if self._begins_as(ours, stack) and (ours.complete or len(ours.frames) > len(stack.frames)):
            self._futile[cut] = 0
            self.places[number] = walked.places
            return ours
        self._futile[cut] += 1
        if self._futile[cut] == _FUTILE:
            count = DUMPS_FUTILE.to_bytes(8, "little")
            bpf.update_element(self._maps.fds["DUMPS"], cut.to_bytes(8, "little"), count)
        return stack

    def _without_guesses(self, stack: Stack) -> Stack:
        """Cut a stack at code that turns out to be a file's, mapped without a word: its frame pointer meant nothing."""
        for at, key in enumerate(stack.frames):
            space = self._spaces.owner_of.get(key >> FRAME_BINARY_SHIFT)
            if space is None or self._is_in_no_file(space, key & FRAME_ADDRESS_MASK):
                continue
            there = self._in_file(space, key)
            if there is not None:
                return Stack((*stack.frames[:at], there), StackStatus.NO_TABLE)
        return stack

    def _without_data(self, stack: Stack) -> Stack:
        """Take the last frame off where it is on a stack or in data: a routine that switches stacks led there."""
        if stack.complete or len(stack.frames) < 2:
            return stack
        key = stack.frames[-1]
        space = self._spaces.owner_of.get(key >> FRAME_BINARY_SHIFT)
        if space is None:
            return stack
        address = key & FRAME_ADDRESS_MASK
        self.look_for(space, address)
        is_data = address < _PAGE_BYTES or any(start <= address < end for start, end in self._data.get(space, ()))
        return Stack(stack.frames[:-1], StackStatus.NO_TABLE) if is_data else stack

    def _in_file(self, space: Space, key: int) -> int | None:
        """Return a frame in no binary as the frame of the file that is known by now to be mapped there, if any is."""
        found = _Code(self, space).find(key & FRAME_ADDRESS_MASK)
        if found is None:
            return None
        binary, bias = found
        return binary.id << FRAME_BINARY_SHIFT | key & FRAME_EXACT | (key - bias & FRAME_ADDRESS_MASK)

    def _begins_as(self, walked: Stack, stack: Stack) -> bool:
        """Tell whether both unwinders agree, up to code that was not known in the kernel to be a file's. Of other code
        in no binary the kernel side knows more: by its bytes, or by a table that was registered."""
        for ours, theirs in zip(walked.frames, stack.frames, strict=False):
            if ours != theirs:
                space = self._spaces.owner_of.get(theirs >> FRAME_BINARY_SHIFT)
                there = self._in_file(space, theirs) if space is not None else None
                return there is not None and ours | FRAME_EXACT == there | FRAME_EXACT
        return len(walked.frames) >= len(stack.frames)

    def _index_of(self, binary: OpenBinary) -> FrameIndex:
        if binary.id not in self._indexes:
            self._indexes[binary.id] = FrameIndex(binary.image)
        return self._indexes[binary.id]

    def placed(self, space: Space) -> list[PlacedFile]:
        return sorted(self._spaces.executable(space), key=lambda placed: placed[0].start)

    def look_for(self, space: Space, address: int) -> bool:
        """Look in the process for a mapping that is not known; False where it was looked for before."""
        if self._is_in_no_file(space, address):
            return False
        entries = self._look_again(space)
        there = [(e.start, e.end) for e in entries if e.start <= address < e.end]
        page = address & -_PAGE_BYTES
        self._looked_for[space].extend(there or [(page, page + _PAGE_BYTES)])
        self._data.setdefault(space, []).extend(data_at(address, entries or self._spaces.as_last_read(space)))
        return True

    def _is_in_no_file(self, space: Space, address: int) -> bool:
        """Tell whether that was found before, or is not worth another look."""
        known = self._looked_for.setdefault(space, [])
        return len(known) >= _MOST_LOOKS or any(start <= address < end for start, end in known)


def data_at(address: int, entries: Sequence[MapsEntry]) -> Iterator[Range]:
    """Yield the mapping that an address is in, if nothing there can be code: what is in no file may be that of a JIT,
    which makes it writable for a while, where the process has executable memory of its own."""
    has_own_code = any(entry.executable and _is_of_program(entry) for entry in entries)
    for entry in entries:
        start = entry.start - _STACK_GROWS if entry.path == "[stack]" else entry.start
        if start <= address < entry.end and not entry.executable and not (has_own_code and _is_of_program(entry)):
            yield start, entry.end


def _is_of_program(entry: MapsEntry) -> bool:
    """Tell whether the program has mapped it by itself, and no file: it may have given it a name."""
    return not entry.path or entry.path.startswith("[anon")


class _Code:
    """What code is where in one address space, as it is known now."""

    def __init__(self, completion: StackCompletion, space: Space) -> None:
        self._completion, self._space = completion, space
        self._take(completion.placed(space))

    def _take(self, placed: list[PlacedFile]) -> None:
        self._placed = placed
        self._starts = [mapping.start for mapping, _, _ in placed]

    def find(self, address: int) -> tuple[OpenBinary, int] | None:
        found = self._at(address)
        if found is None and self._completion.look_for(self._space, address):
            if placed := self._completion.placed(self._space):  # else it has ended, and what was known still holds
                self._take(placed)
            found = self._at(address)
        return found

    def _at(self, address: int) -> tuple[OpenBinary, int] | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._placed[at][0].end:
            return None
        return self._placed[at][1:]
