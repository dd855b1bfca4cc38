"""Reachability: which outstanding blocks something still points at, by address space."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tracer.late_dataclasses import dataclass


class Reach(IntEnum):
    """The class of a block, from the strongest way to reach it to none; `reachable` of a report's entry is its name."""

    UNKNOWN = 0
    """Not looked into: the reason is that of its Scan."""
    REACHABLE = 1
    """From a root by pointers to starts of blocks, or interior ones that containers keep (memcheck's heuristics)."""
    POSSIBLE = 2
    """From a root, but only by an interior pointer somewhere on the way."""
    STACK = 3
    """Only from words on the stack or in the registers of the thread that ended the process."""
    LOST = 4
    """Nothing points at it, or only blocks of its own cycle, of which it stands for all."""
    INDIRECT = 5
    """Only blocks that are lost point at it: its owner is the lost block that it hangs below."""


class RootKind(IntEnum):
    """What a word is in that points at a block first."""

    NONE = 0
    GLOBAL = 1
    THREAD_LOCAL = 2
    STACK = 3
    REGISTER = 4
    MAPPING = 5
    BLOCK = 6
    """The loader's own."""
    DESCRIBED = 7
    """A block of an allocator whose memory a spec calls a root."""
    HIDDEN = 8
    """Perhaps a block of an allocator that hides pointers, as a spec says: nothing that can be seen points there."""


NOT_STOPPED = "--no-stop was given"
"""Why a process was read while it ran, as a clause."""
AT_EXEC = "it executed another program"
"""Reason of a Scan: of what was alive then nothing is said."""
KIND_REFERENCE, KIND_ALLOCATION, KIND_MAPPING = 0, 1, 2

REACH_RECORD = np.dtype(
    [
        ("address", "<u8"), ("pid", "<u4"), ("generation", "<u2"), ("kind", "u1"), ("reach", "u1"),
        ("owner", "<u8"), ("root", "<u8"), ("root_kind", "u1"), ("holders", "<u4"),
        ("site", "<u2"), ("keeper", "<u8"),
    ],
    align=True,
)
"""The class of one outstanding block, counted object or mapping; keyed as in Snapshot.allocations, objects and mapped.

`kind`: KIND_REFERENCE, KIND_ALLOCATION or KIND_MAPPING. `owner`: of Reach.INDIRECT the start of the lost block that it
hangs below, else 0. `root`: the address of the word it was first reached by, 0 if none; `root_kind` a RootKind.
`holders`: of a counted object 1 + how many words point at it, 0 where they were not counted. `site`: that of a block,
since a pool and the first block in it begin at one address; 0 in recordings of before. `keeper`: of a counted object
the address of another, by which alone it lives, 0 for none."""


@dataclass(frozen=True)
class Resident:
    """What the resident memory of an address space is, bytes. The kernel says how much there is of each mapping; how
    much of an allocator's is in live blocks is estimated: blocks count as if all of them were resident."""

    total: int
    live: int
    """In live blocks that are known."""
    free: int
    """In memory of allocators, but for no block that is known: free, books, or older than the trace."""
    stacks: int
    files: int
    """Pages as the file has them: code, constants, mapped files."""
    data: int
    """Pages of files that were written to: data of binaries."""
    other: int
    """Other mappings: made by the program, .bss, stacks of ended threads."""
    top_stack: int = 0
    """Of the last block in the heap of brk(2): the id of its birth, 0 where it is not known."""
    top_size: int = 0
    top_made_ns: int = 0
    free_below_top: int = 0
    """In that heap, before that block, in no chunk of a block."""
    rounding: int = 0
    """What glibc's malloc takes for these blocks beyond their sizes: a head for each, and what it rounds up to."""


@dataclass(frozen=True)
class Scan:
    """What was looked into of one address space, or why it was not."""

    pid: int
    generation: int
    reason: str | None = None
    """Why nothing is known, as a clause ("it was killed by SIGKILL"); None where it was looked into."""
    held_ns: int = 0
    """How long the target waited for it."""
    bytes_read: int = 0
    blocks: int = 0
    resident: Resident | None = None
    """None where it was not looked into, or could not be read."""
    why_running: str | None = None
    """Why it was not stopped, as a clause; None where it was, or was held."""
    passes: int = 1
    """How often its memory was read: more than once where it ran meanwhile."""
