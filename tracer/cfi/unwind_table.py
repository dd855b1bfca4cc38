"""Unwind tables: which rule holds at each address of a binary, as the BPF unwinder looks it up.

Four bytes a row, found through an index by 4 KB page, so that a lookup is one load and a search among the rows of a
page, of which there are at most 4096.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tracer.architecture.current import ARCHITECTURE
from tracer.cfi.call_frames import CallFrames, FrameSource, decode
from tracer.cfi.frame_source import frame_sources
from tracer.cfi.rows import UNSET, CfiRows
from tracer.cfi.unwind_rules import Rule, distinct_rules
from tracer.elf.image import PF_X, PT_LOAD, Image, Segment
from tracer.late_dataclasses import dataclass
from tracer.model.records import RuleKind

PAGE_SHIFT = 12
PAGE_MASK = (1 << PAGE_SHIFT) - 1
ROW_SHIFT = 20
RULE_MASK = (1 << ROW_SHIFT) - 1
MAX_PAGES = 1 << 18
"""1 GB of text. What is further away from the rest has no table."""
MAX_PADDING_BYTES = 15
"""Up to so much between two functions is padding, which never runs; a row saved is worth more."""


_LAST = (1 << 63) - 1
"""No code is above: a damaged header's numbers do not fit into int64."""
ENTRY_BYTES = 128
"""As much behind the entry point belongs to it, unless another function begins there."""


@dataclass(frozen=True, eq=False)
class UnwindTable:
    """The rules of one binary.

    `first_link_page` is the link address >> 12 of the first page. `pages` (uint32, one more than there are pages)
    holds the index into `rows` of each page's first row, and the end. A row (uint32) is (link address & 0xfff) << 20
    | index into `rules`, and holds up to the next; every page begins with a row at 0. `rules` (dtype RULE) are the
    binary's own; the first is RuleKind.NONE.
    """

    first_link_page: int
    pages: NDArray[np.uint32]
    rows: NDArray[np.uint32]
    rules: NDArray[np.void]


def build_table(image: Image) -> UnwindTable | None:
    """Build the table of a binary from .eh_frame, and from .debug_frame for functions that only it describes.

    None where neither describes any code, as in binaries of Go. Takes about 10 ms per MB of text.
    """
    if image.machine != ARCHITECTURE.elf_machine:
        return None
    return table_of_sources(frame_sources(image), image.segments, start_of(image))


def start_of(image: Image) -> int:
    """Return where the kernel starts a program or its loader; 0 for a library, whose header names any place."""
    is_program = image.interpreter is not None or not (image.soname or image.needed)
    return image.entry if is_program or (image.soname or "").startswith("ld-") else 0


def table_of_sources(
    sources: Sequence[FrameSource], segments: Sequence[Segment], entry: int = 0
) -> UnwindTable | None:
    """Build the table of the functions of `sources` that lie in executable `segments`.

    Nobody calls the code at `entry`, where the kernel starts a program or its loader: it ends a stack. In the loader,
    which calls the constructors of libraries from there, it is assembly that no source describes.
    """
    code = [
        (min(s.link_address, _LAST), min(s.link_address + s.memory_size, _LAST))
        for s in segments if s.type == PT_LOAD and s.flags & PF_X
    ]  # fmt: skip
    rows = CfiRows()
    frames: CallFrames | None = None
    for source in sources:
        found = _within(decode(source, rows), code)
        frames = _joined(frames, found) if frames else found
    return _compact(_with_entry(frames, entry)) if frames else None


def _with_entry(frames: CallFrames, entry: int) -> CallFrames:
    """Add the code at `entry` as a function of its own, up to the next one, if it is in none."""
    if not 0 < entry <= _LAST - ENTRY_BYTES or len(frames.starts) == 0:
        return frames
    if np.any((frames.starts <= entry) & (entry < frames.ends)):
        return frames
    program = frames.rows.add(b"", 1, 1, UNSET._replace(return_address="undefined"), False)
    return replace(
        frames,
        starts=np.append(frames.starts, entry),
        ends=np.append(frames.ends, entry + ENTRY_BYTES),
        programs=np.append(frames.programs, program),
    )


def build_table_from_memory(data: bytes, address: int) -> UnwindTable | None:
    """Build the table of a live .eh_frame at `address`, which a record of no length ends (code made at run time).

    Link addresses are addresses of the process; `first_link_page` may need more than 32 bits.
    """
    return table_of_frames(decode(FrameSource(data, address, ends_at_zero=True)))


def table_of_frames(frames: CallFrames) -> UnwindTable | None:
    """Build the table of these functions; None for none."""
    return _compact(frames)


def lookup(table: UnwindTable, link_address: int) -> Rule:
    """Return the rule at a link address, as the BPF unwinder finds it."""
    page = (link_address >> PAGE_SHIFT) - table.first_link_page
    if not 0 <= page < len(table.pages) - 1:
        return Rule(RuleKind.NONE)
    rows = table.rows[table.pages[page] : table.pages[page + 1]]
    row = rows[np.searchsorted(rows >> ROW_SHIFT, link_address & PAGE_MASK, "right") - 1]
    kind, fp_saved, fp_offset, offset = table.rules[row & RULE_MASK].item()
    return Rule(RuleKind(kind), fp_saved, fp_offset, offset)


def _within(frames: CallFrames, code: list[tuple[int, int]]) -> CallFrames:
    """Cut functions to the executable segments (a damaged range may be anywhere); all stay where there is none."""
    if not code:
        return frames
    segment_starts, segment_ends = np.array(sorted(code), np.int64).T
    segments = np.searchsorted(segment_starts, frames.starts, "right") - 1
    ends = np.minimum(frames.ends, segment_ends[segments])
    kept = (segments >= 0) & (frames.starts < ends)
    return replace(frames, starts=frames.starts[kept], ends=ends[kept], programs=frames.programs[kept])


def _joined(first: CallFrames, second: CallFrames) -> CallFrames:
    """Add the functions of `second` that overlap none of `first`."""
    if len(first.starts) == 0:
        return second
    order = np.argsort(first.starts, kind="stable")
    behind = np.searchsorted(first.starts[order], second.ends)  # those that start before the end of each
    ends = np.append(0, np.maximum.accumulate(first.ends[order]))
    new = ends[behind] <= second.starts
    return CallFrames(
        np.concatenate((first.starts, second.starts[new])),
        np.concatenate((first.ends, second.ends[new])),
        np.concatenate((first.programs, second.programs[new])),
        second.rows,
    )


def _ordered(frames: CallFrames) -> CallFrames:
    """Sort functions by address, cut each at the next one's start, and keep what MAX_PAGES can hold the most of."""
    order = np.argsort(frames.starts, kind="stable")
    starts, ends, programs = frames.starts[order], frames.ends[order], frames.programs[order]
    limits = (starts & ~PAGE_MASK) + (MAX_PAGES << PAGE_SHIFT)
    behind = np.searchsorted(starts, limits)
    first = int(np.argmax(behind - np.arange(len(starts))))
    window = slice(first, int(behind[first]))
    starts, ends, programs = starts[window], ends[window], programs[window]
    ends = np.minimum(ends, limits[first])
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return replace(frames, starts=starts, ends=ends, programs=programs)


def _compact(frames: CallFrames) -> UnwindTable | None:
    if len(frames.starts) == 0:
        return None
    frames = _ordered(frames)
    rules, rule_of_state = distinct_rules(frames.rows.states)
    addresses, indexes = _expand(frames, rule_of_state)
    first_page = int(addresses[0]) >> PAGE_SHIFT
    last_page = (int(addresses[-1]) - 1) >> PAGE_SHIFT
    page_addresses = np.arange(first_page, last_page + 2, dtype=np.int64) << PAGE_SHIFT
    inside = addresses < page_addresses[-1]
    addresses, indexes = _begin_pages(addresses[inside], indexes[inside], page_addresses[:-1])
    rows = ((addresses & PAGE_MASK) << ROW_SHIFT | indexes).astype(np.uint32)
    pages = np.searchsorted(addresses, page_addresses).astype(np.uint32)
    return UnwindTable(first_page, pages, rows, rules)


def _expand(frames: CallFrames, rule_of_state: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the addresses where the rule changes, ascending, and the index of the rule from there on.

    The last one is the end of the last function, where NONE begins.
    """
    starts, ends, programs = frames.starts, frames.ends, frames.programs
    first_rows = np.frombuffer(frames.rows.first_rows, np.uint32).astype(np.int64)
    distances = np.frombuffer(frames.rows.distances, np.uint32)
    rules = rule_of_state[np.frombuffer(frames.rows.indexes, np.uint32)]

    counts = np.diff(first_rows)[programs]
    functions = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(counts) - counts
    rows = np.arange(len(functions)) - before[functions] + first_rows[programs][functions]
    addresses = starts[functions] + distances[rows]
    inside = addresses < ends[functions]

    gaps = np.append(starts[1:] - ends[:-1] > MAX_PADDING_BYTES, True)
    all_addresses = np.concatenate((addresses[inside], ends[gaps]))
    all_rules = np.concatenate((rules[rows[inside]], np.zeros(np.count_nonzero(gaps), np.uint32)))
    order = np.argsort(all_addresses, kind="stable")
    all_addresses, all_rules = all_addresses[order], all_rules[order]
    changed = np.append(True, all_rules[1:] != all_rules[:-1])
    changed[-1] = True
    return all_addresses[changed], all_rules[changed]


def _begin_pages(
    addresses: NDArray[np.int64], indexes: NDArray[np.uint32], page_addresses: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Add a row at the start of each page that has none, with the rule in force there (NONE before the first)."""
    before = np.searchsorted(addresses, page_addresses, "right") - 1
    missing = (before < 0) | (addresses[before] != page_addresses)
    in_force = np.where(before < 0, 0, indexes[before])[missing]
    at = (before + 1)[missing]
    return np.insert(addresses, at, page_addresses[missing]), np.insert(indexes, at, in_force)
