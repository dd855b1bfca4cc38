"""Frees that broke a rule: which of them are errors for certain, and what is said of them."""

from __future__ import annotations

import mmap
import signal
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath

import numpy as np

from tracer.analysis.address_regions import Places
from tracer.analysis.evidence import Evidence
from tracer.analysis.unseen_calls import family, unseen_makes
from tracer.model.events import AROUND_SHIFT, ErrorKind, Where
from tracer.model.frames import THROUGH_POINTER
from tracer.model.records import FRAME_BINARY_SHIFT, MAPPED_RECORD
from tracer.model.snapshot import Records

KINDS: Mapping[int, str] = {
    ErrorKind.DOUBLE_FREE: "double-free",
    ErrorKind.INVALID_FREE: "invalid-free",
    ErrorKind.MISMATCHED_FREE: "mismatched-free",
}
C_LIBRARIES = ("libc.so*", "libc-2.*.so", "ld-musl-*", "libc.musl*")
"""File names of glibc and musl, all of whose allocating functions have probes; those of others that take their place
may have more."""
_ALIGNMENT = 16
"""Of each block of glibc and musl."""
_ENDS_OF_THREADS = frozenset({
    "tcache_thread_shutdown", "__malloc_arena_thread_freeres", "__libc_thread_freeres", "start_thread",
    "__libc_freeres",
})  # fmt: skip
"""What glibc calls when a thread is over (malloc/arena.c, malloc/malloc.c), as a static program has it."""


class BadFrees:
    """Tells which of the frees that the kernel side sent as errors are some.

    When a thread is over, glibc frees what lies in its cache, which the program had freed before, and the cache
    itself. Nobody but the C library is on the stack then, and it calls its own `free` by name.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._names = {binary.id: PurePath(binary.path).name for binary in evidence.snapshot.binaries}
        libraries = {number for number, name in self._names.items() if _is_c_library(name)}
        self._any_c_library = bool(libraries)
        self._with_c_library = {(one.pid, one.generation): False for one in evidence.snapshot.mappings}
        self._with_c_library |= {
            (one.pid, one.generation): True for one in evidence.snapshot.mappings if one.binary in libraries
        }
        self._made_unseen = {family(one) for one in unseen_makes(evidence.snapshot.coverage)}
        self._places = Places(evidence.snapshot)
        events = evidence.snapshot.errors.copy()
        verdicts = [self._judge(event) for event in events]
        self.broken: Records = events[np.array([verdict is True for verdict in verdicts], dtype=bool)]
        """The errors, without what is none. Of an address inside a block, `birth` is the stack of the block's birth."""
        open_ = (row for row, verdict in enumerate(verdicts) if verdict is None)
        unjudged = [row for row in open_ if not self._is_of_child(events[row])]
        self.unjudged = int(np.maximum(events["represented"][unjudged], 1).sum())
        """Frees that may be an error or not; in a forked child they are of what it inherited."""

    def _is_of_child(self, event: np.void) -> bool:
        process = self._evidence.processes.get((int(event["pid"]), int(event["generation"])))
        return process is not None and process.forked_from is not None

    def _judge(self, event: np.void) -> bool | None:
        """Return whether it is an error; None where that is not known. Complete what it says of the block."""
        if event["error"] not in KINDS:
            return True
        by_program = self._is_by_program(event)
        if by_program is False:
            return False
        is_whole = by_program is True and not self._may_have_missed_births(event)
        if event["error"] == ErrorKind.INVALID_FREE:
            return self._judge_invalid(event, is_whole=is_whole)
        return True if is_whole else None

    def _judge_invalid(self, event: np.void, *, is_whole: bool) -> bool | None:
        """The same of an address that is no block's, for all that is known. `is_whole`: nothing was missed."""
        on_stack, aborted = event["where"] & Where.ON_STACK, bool(event["where"] & Where.ABORTED)
        if not is_whole:
            return True if aborted and (self._is_in_frame(event) or self._places.binary_at(event)) else None
        is_around = bool(event["where"] >> AROUND_SHIFT)
        other = self._places.block_of_another(event)
        if other is None and not on_stack:  # the stack of a thread is a mapping too
            other = self._places.mapping_at(event)
        block = other if other is not None or is_around else self._places.block_around(event)
        if block is not None:
            event["birth"] = block["stack"]
            event["where"] &= ~Where.ON_STACK  # which may lie in a block
        if other is not None and not _is_stack(other):
            event["error"] = ErrorKind.MISMATCHED_FREE
        if block is not None or is_around or self._is_misaligned(event) or self._is_in_frame(event):
            return True
        is_launched = self._evidence.snapshot.mode == "launched"
        if not is_launched and not aborted:
            return None
        if (is_launched and on_stack) or self._places.binary_at(event):
            return True
        # libc aborts in frees of older and of inherited blocks too, where what it keeps beside them was written over
        is_seen_whole = is_launched and not self._is_of_child(event)
        return True if is_seen_whole and event["where"] & (Where.ABORTED | Where.NO_MEMORY) else None

    def _is_in_frame(self, event: np.void) -> bool:
        return bool(event["where"] & Where.ON_STACK and event["birth"])

    def _is_misaligned(self, event: np.void) -> bool:
        """Tell whether a C library never makes a block at the address."""
        sites = self._evidence.snapshot.sites
        is_c_library = event["site"] < len(sites) and _is_c_library(sites[event["site"]].module)
        return is_c_library and not event["group"] and bool(event["address"] % _ALIGNMENT)

    def _may_have_missed_births(self, event: np.void) -> bool:
        """Tell whether a block may have been made at the address unseen: as something was lost, where no probe is, or
        by a function of a described allocator that the description leaves out: such blocks are seen to be freed."""
        snapshot, of_type = self._evidence.snapshot, self.type(event) or ""
        space = int(event["pid"]), int(event["generation"])
        if not snapshot.is_whole(*space) or ("allocation", of_type) in self._made_unseen:
            return True
        process = self._evidence.processes.get(space)
        return bool(of_type and snapshot.mode == "launched" and process is not None and process.unknown_frees
                    and process.forked_from is None)

    def _is_by_program(self, event: np.void) -> bool | None:
        """Tell a free by the program from one by a thread's end; None for an allocator that is not fully known."""
        snapshot = self._evidence.snapshot
        if event["group"]:
            return True
        stack = snapshot.stacks.get(int(event["stack"]))
        if stack is None or not stack.frames or event["site"] >= len(snapshot.sites):
            return None
        module = snapshot.sites[event["site"]].module
        if _is_c_library(module):
            others = {self._names.get(key >> FRAME_BINARY_SHIFT) for key in stack.frames} - {module}
            return (bool(others) or self._is_called_for(event)) if others != {None} else None
        if self._has_c_library((int(event["pid"]), int(event["generation"]))):
            return None
        functions = {frame.function for frame in self._evidence.stacks.get(int(event["stack"])).frames}
        if functions == {None}:
            return None
        return "main" in functions or not self._callers(event) & _ENDS_OF_THREADS

    def _has_c_library(self, space: tuple[int, int]) -> bool:
        """Tell whether a C library is in an address space, or in one that it began as a copy of."""
        process = self._evidence.processes.get(space)
        if self._with_c_library.get(space, self._any_c_library) or process is None or process.forked_from is None:
            return self._with_c_library.get(space, self._any_c_library)
        return self._has_c_library(process.forked_from)

    def _is_called_for(self, event: np.void) -> bool:
        """Tell whether the C library, with nobody else on the stack, frees what the program gave it to free: that calls
        `free` through a pointer, as destructors of keys are (`pthread_key_create`)."""
        names = self._callers(event)
        if names != {None}:
            return not names & _ENDS_OF_THREADS
        return self._evidence.stacks.get(int(event["stack"])).frames[0].calls == THROUGH_POINTER

    def _callers(self, event: np.void) -> set[str | None]:
        """Return the function that called `free`, and those that were inlined there."""
        frames = self._evidence.stacks.get(int(event["stack"])).frames
        leaf = frames[0]
        return {frame.function for frame in frames if (frame.path, frame.address) == (leaf.path, leaf.address)}

    def type(self, event: np.void) -> str | None:
        """Return the name of a described allocator; None for malloc and its relatives."""
        return self._evidence.allocator(int(event["site"])) if event["group"] else None

    def reason(self, event: np.void) -> str | None:
        """Say what is known of the address beside its stacks."""
        if event["error"] == ErrorKind.INVALID_FREE:
            return self._where(event)
        if event["error"] == ErrorKind.MISMATCHED_FREE:
            block = self._places.block_of_another(event)
            return self._of_a_mapping(event) if block is None else self._of_another(block)
        if event["error"] != ErrorKind.DOUBLE_FREE:
            return None
        if event["birth"]:
            what = f"a block of {byte_words(int(event['block_size']))}"
        else:
            what = "a block that its parent made" if self._is_of_child(event) else "a block older than the trace"
        return what if event["release"] else f"{what}, freed earlier: the place was not kept"

    def _of_another(self, block: np.void) -> str:
        return f"a block of {byte_words(int(block['size']))} that {self._evidence.allocator(int(block['site']))} made"

    def _of_a_mapping(self, event: np.void) -> str | None:
        mapping = self._places.mapping_at(event)
        if mapping is None:
            return None
        inside = int(event["address"]) - int(mapping["start"])
        what = "a stack" if _is_stack(mapping) else "a mapping"
        where = f"{byte_words(inside)} inside {what}" if inside else what
        maker = self._evidence.allocator(int(mapping["site"]))
        return f"{where} of {byte_words(int(mapping['length']))} that {maker} made"

    def _where(self, event: np.void) -> str:
        inside, size = int(event["where"]) >> AROUND_SHIFT, int(event["block_size"])
        block = self._places.block_around(event)
        if not inside and block is not None:
            inside, size = int(event["address"]) - int(block["address"]), int(block["size"])
        if inside:
            return f"{byte_words(inside)} inside a block of {size:,}"
        if event["where"] & Where.BEHIND_FRAMES:
            return "in a thread-local variable of the thread that frees it"
        if event["where"] & Where.ON_STACK:
            return f"on the stack of {self._owner_of_frame(event) or 'the thread that frees it'}"
        return self._in_binary(event) or self._of_a_mapping(event) or self._nowhere(event)

    def _in_binary(self, event: np.void) -> str | None:
        binary = self._places.binary_at(event)
        if binary is None:
            return None
        what = "the code" if self._places.is_code(event) else "the data"
        if event["serial"]:
            name = self._evidence.snapshot.holder_names[int(event["serial"]) - 1].name
            what = f"variable {name.removesuffix('[]')}"
        return f"in {what} of {binary}"

    def _nowhere(self, event: np.void) -> str:
        if self._is_misaligned(event):
            return f"never allocated: malloc's blocks are at multiples of {_ALIGNMENT} bytes"
        if not event["where"] & Where.NO_MEMORY:
            return "at no block that is known; the C library ended the program"
        process = self._evidence.processes.get((int(event["pid"]), int(event["generation"])))
        is_read = event["where"] & Where.ABORTED or (process is not None and process.signal == signal.SIGABRT)
        return f"never allocated: no {'page' if is_read else 'memory'} is there"

    def _owner_of_frame(self, event: np.void) -> str | None:
        """Return the function in whose frame the address is: that which others were inlined in."""
        if not event["birth"]:
            return None
        frames = self._evidence.stacks.get(int(event["birth"])).frames
        same = [frame for frame in frames if (frame.path, frame.address) == (frames[0].path, frames[0].address)]
        return same[-1].function if same else None


def byte_words(count: int) -> str:
    """Return a number of bytes in words: "1 byte", "4,096 bytes"."""
    return f"{count:,} byte{'s' * (count != 1)}"


def _is_stack(rows: np.void) -> bool:
    """Tell whether what the target mapped, or a block, is a mapping that was made for a stack."""
    return rows.dtype == MAPPED_RECORD and bool(rows["flags"] & mmap.MAP_STACK)


def _is_c_library(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in C_LIBRARIES)
