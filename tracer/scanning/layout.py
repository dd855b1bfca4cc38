"""Layout of an address space by use: data of binaries, stacks, an allocator's, or the program's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tracer.architecture.current import ARCHITECTURE
from tracer.elf.image import PT_LOAD
from tracer.late_dataclasses import dataclass
from tracer.procfs.maps import MapsEntry
from tracer.reachability.memory import RegionKind

_SPECIAL = ("[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]")
_HEAP, _STACK = "[heap]", "[stack]"
_ARENA_BYTES = 1 << 26
"""HEAP_MAX_SIZE of glibc (malloc/arena.c): where its other arenas begin is a multiple of it."""
_ARENA_HEADER_MOST = 0x100
_MOST_SEALED = 1 << 26
"""Of memory that may not be read: what is larger is reserved for later, as heaps of managed languages do."""
_CHUNK_STEPS = 64
_SIZE_BITS = ~7
_DESCRIPTOR_REACH, _SELF_WORD, _TID_WORD = 0x4000, 2, 0x2D0 // 8
"""Of struct pthread of glibc since 2.17 on x86-64: the words `header.self` and `tid`."""
_LEAST_CHUNK = 32
_PAGE_BYTES = 4096
_MAGIC, _MAGIC_BITS = int.from_bytes(b"\x7fELF\x02", "little"), (1 << 40) - 1
_HEADER_WORDS, _SEGMENT_WORDS = 8, 7
"""Of an ELF header and of one of a segment."""

Words = Callable[[int, int], Sequence[int]]
"""Reads so many words at an address; fewer where they cannot be read."""
Touched = Callable[[int], bool]
"""Tells whether the page of an address is there, in memory or swapped out. To read another one of a large reservation
would give its process page tables for it."""
FindStorage = Callable[[Sequence[MapsEntry], Words], Sequence[tuple[int, int]]]
"""Finds the thread-local storage of allocators in an address space: where from the thread pointer on, and its size."""


@dataclass(frozen=True)
class Range:
    start: int
    end: int
    kind: RegionKind
    own_only: bool = False
    """Only the pages that the process wrote to: the others are a file's."""


@dataclass(frozen=True)
class Layout:
    scanned: tuple[Range, ...]
    """What may hold pointers."""
    targets: tuple[tuple[int, int], ...]
    """Where blocks, mappings and counted objects may be."""
    constants: tuple[tuple[int, int], ...]
    """Read-only data of binaries: tables of virtual functions are there."""
    code: tuple[tuple[int, int], ...]
    sealed: tuple[tuple[int, int], ...] = ()
    """What of `scanned` the program may not read at the moment."""


def layout(
    entries: Sequence[MapsEntry], stacks: Collection[int], ending: int, words: Words, *,
    touched: Touched, unsure: Collection[int] = (),
) -> Layout:  # fmt: skip
    """Sort the entries of /proc/PID/maps. `stacks`: stack pointers of the threads that run on; `ending`: that of the
    one that ends the process. `unsure`: those of the former that may be elsewhere by now.

    Binaries are mapped privately. What is mapped shared to be executed is a JIT's own, and often mapped twice.
    """
    modules = {_file(e) for e in entries if e.inode and e.executable and not e.shared}
    scanned: list[Range] = []
    targets, constants, code = [], [], []
    before: MapsEntry | None = None
    first: MapsEntry | None = None
    """Of the module that was met last: there its headers are."""
    for entry in entries:
        if entry.path in _SPECIAL:
            before = entry
            continue
        is_module = _file(entry) in modules
        if is_module and entry.executable:
            code.append((entry.start, entry.end))
        elif is_module and not entry.writable:
            constants.append((entry.start, entry.end))
        if entry.path != _STACK and not (is_module and not entry.writable):
            targets.append((entry.start, entry.end))
        if is_module and not entry.file_offset:
            first = entry
        behind = before is not None and before.end == entry.start and before.writable and _file(before) in modules
        scanned += _ranges(entry, before, first, is_module, behind, stacks, ending, words, touched, unsure)
        before = entry
    sealed = tuple((entry.start, entry.end) for entry in entries if _is_sealed(entry))
    return Layout(tuple(scanned), tuple(targets), tuple(constants), tuple(code), sealed)


def _ranges(
    entry: MapsEntry, before: MapsEntry | None, first: MapsEntry | None, is_module: bool, is_behind_data: bool,
    stacks: Collection[int], ending: int, words: Words, touched: Touched, unsure: Collection[int],
) -> list[Range]:  # fmt: skip
    """`before`: the entry before; `first`: the first one of the module that was met last."""
    if not entry.readable:
        return [Range(entry.start, entry.end, RegionKind.MAPPING, own_only=True)] if _is_sealed(entry) else []
    if is_module:
        if entry.executable and not entry.writable:
            return []
        return [Range(entry.start, entry.end, RegionKind.GLOBAL, own_only=not entry.writable)]
    own_only = not entry.writable and not entry.shared
    inside = sorted(sp for sp in (*stacks, ending) if entry.start <= sp < entry.end)
    if entry.path == _STACK or (inside and _is_guard(before, entry)):
        return [_stack(entry, () if any(sp in unsure for sp in inside) else inside, ending)]
    if not inside and not entry.path and _is_guard(before, entry) and _is_ended_thread(entry, words):
        return []
    if inside and entry.path != _HEAP:
        return [Range(entry.start, entry.end, RegionKind.STACK)]
    if entry.path == _HEAP:
        kind = RegionKind.ALLOCATOR if _begins_with_chunks(entry, words) else RegionKind.BREAK
        return [Range(entry.start, entry.end, kind)]
    if entry.inode or entry.path:
        return [Range(entry.start, entry.end, RegionKind.MAPPING, own_only)]
    if before is None or not is_behind_data:
        return _without_arenas(entry, own_only, words, touched)
    end = min(_data_end(first, before, words) or entry.end, entry.end)  # .bss; the kernel joins what it can with it
    data = [Range(entry.start, end, RegionKind.GLOBAL, own_only)] if end > entry.start else []
    return data + (_without_arenas(entry._replace(start=end), own_only, words, touched) if end < entry.end else [])


def _data_end(first: MapsEntry | None, before: MapsEntry, words: Words) -> int:
    """Return where the data of a module end in memory, by its program headers, which its first mapping has: up to a
    whole page, and not before the last mapping of its file. 0 where they make no sense.

    Format: System V ABI, Elf64_Ehdr and Elf64_Phdr.
    """
    if first is None or _file(first) != _file(before):
        return 0
    header = words(first.start, _HEADER_WORDS)
    if len(header) < _HEADER_WORDS or header[0] & _MAGIC_BITS != _MAGIC:
        return 0
    at, count = header[4], header[7] & 0xFFFF
    if header[6] >> 48 != 8 * _SEGMENT_WORDS or at % 8 or at + 8 * _SEGMENT_WORDS * count > first.end - first.start:
        return 0
    found = words(first.start + at, _SEGMENT_WORDS * count)
    rows = [found[i : i + _SEGMENT_WORDS] for i in range(0, len(found), _SEGMENT_WORDS)]
    whole = (row for row in rows if len(row) == _SEGMENT_WORDS)
    loaded = [(row[2], row[2] + row[5]) for row in whole if row[0] & 0xFFFFFFFF == PT_LOAD]
    if not loaded:
        return 0
    bias = first.start - (min(loaded)[0] & -_PAGE_BYTES)
    end = -(-(bias + max(end for _, end in loaded)) // _PAGE_BYTES) * _PAGE_BYTES
    return end if end >= before.end else 0


def _file(entry: MapsEntry) -> tuple[str, int]:
    return entry.device, entry.inode


def _is_sealed(entry: MapsEntry) -> bool:
    """Whether it is memory of the program's own that it may not read at the moment. Of a file or a device it is passed
    over: to read what a device has there may have effects."""
    return not (entry.readable or entry.inode or entry.path) and entry.end - entry.start <= _MOST_SEALED


def _is_guard(before: MapsEntry | None, entry: MapsEntry) -> bool:
    """Whether the entry before is the page below a thread's stack: nothing else lies below that stack then."""
    return before is not None and before.end == entry.start and not (before.readable or before.writable)


def _is_ended_thread(entry: MapsEntry, words: Words) -> bool:
    """Whether it is a stack that glibc keeps for the next thread: at its end is the thread pointer's struct pthread,
    which shows itself, and whose tid is none any more: cleared by the kernel, or -1 once it was joined (nptl/descr.h,
    FREE_P)."""
    start = max(entry.start, entry.end - _DESCRIPTOR_REACH)
    found = words(start, (entry.end - start) // 8)
    for index in range(len(found) - _TID_WORD - 1, -1, -1):
        if found[index] == start + 8 * index == found[index + _SELF_WORD]:
            tid = found[index + _TID_WORD] & 0xFFFFFFFF
            return tid == 0 or tid >= 1 << 31
    return False


def _stack(entry: MapsEntry, inside: Sequence[int], ending: int) -> Range:
    """The main stack, or one above its guard page. The thread that ends the process is told apart only on the main
    stack: thread-local storage lies on the others."""
    if not inside:  # its thread runs on another one: this one may be waiting to be gone back to
        return Range(entry.start, entry.end, RegionKind.STACK)
    # at the entry of _exit nothing is below: what is there is over
    below = 0 if inside[0] == ending else ARCHITECTURE.red_zone_bytes
    start = max(entry.start, inside[0] - below & ~7)
    is_ending = entry.path == _STACK and list(inside) == [ending]
    return Range(start, entry.end, RegionKind.ENDING_STACK if is_ending else RegionKind.STACK)


def _begins_with_chunks(entry: MapsEntry, words: Words) -> bool:
    """Whether the heap of brk(2) was glibc's malloc's from its first byte on: then what is in no block is free.

    Chunks follow each other; the word at each chunk's second place is its size, with three flags (malloc/malloc.c,
    malloc_chunk). A static program has its thread-local storage there first; other allocators look different.
    """
    at = entry.start
    for step in range(_CHUNK_STEPS):
        found = words(at, 2)
        if len(found) < 2:
            return step > 0
        size = found[1] & _SIZE_BITS
        if size < _LEAST_CHUNK or size % 16 or at + size > entry.end or found[1] & 6:
            return False
        at += size
        if at >= entry.end:
            return True
    return True


def _without_arenas(entry: MapsEntry, own_only: bool, words: Words, touched: Touched) -> list[Range]:
    """Tell glibc's further arenas from what else lies in one entry: neighbours of equal rights are one."""
    ranges, at = [], entry.start
    for base in range(-(-entry.start // _ARENA_BYTES) * _ARENA_BYTES, entry.end, _ARENA_BYTES):
        length = _arena_length(base, words) if touched(base) else 0
        if not length:
            continue
        if base > at:
            ranges.append(Range(at, base, RegionKind.MAPPING, own_only))
        at = min(base + length, entry.end)
        ranges.append(Range(base, at, RegionKind.ALLOCATOR, own_only))
    if at < entry.end:
        ranges.append(Range(at, entry.end, RegionKind.MAPPING, own_only))
    return ranges


def _arena_length(base: int, words: Words) -> int:
    """Return how much of an arena's heap is in use (struct heap_info: arena, previous heap, size); 0 if it is none."""
    header = words(base, 4)
    if len(header) < 4:
        return 0
    arena, previous, size = header[:3]
    in_header = 0 < arena % _ARENA_BYTES < _ARENA_HEADER_MOST
    chained = previous % _ARENA_BYTES == 0 and (previous != 0) == (arena // _ARENA_BYTES != base // _ARENA_BYTES)
    fits = 0 < size <= _ARENA_BYTES and size % 4096 == 0
    return size if in_header and chained and fits else 0
