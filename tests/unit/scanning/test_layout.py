"""Layouts of address spaces: the data of a binary end where its headers say so, whatever lies behind them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from tracer.procfs.maps import MapsEntry
from tracer.reachability.memory import RegionKind
from tracer.scanning.layout import layout

BASE = 0x7F0000000000
FILE_END = BASE + 0x5000
PAGE = 0x1000


def elf(*segments: tuple[int, int, int], magic: bytes = b"\x7fELF\x02", size: int = 56) -> bytes:
    """Return the beginning of a file with segments (type, address, bytes in memory)."""
    header = magic.ljust(16, b"\0") + bytes(16) + struct.pack("<QQIHHHHHH", 64, 0, 0, 64, size, len(segments), 0, 0, 0)
    rows = (struct.pack("<IIQQQQQQ", kind, 6, 0, at, at, 0, length, PAGE) for kind, at, length in segments)
    return header + b"".join(rows)


def module(start: int, end: int, offset: int, *, executable: bool = False, writable: bool = False) -> MapsEntry:
    return MapsEntry(start, end, executable, writable, offset, "08:01", 7, "/lib/libx.so")


def kinds(head: bytes, behind: int, before: Sequence[MapsEntry] = ()) -> list[tuple[int, int, RegionKind]]:
    """Return what of the anonymous memory behind a module's data, so many bytes, is of which kind."""
    def words(address: int, count: int) -> Sequence[int]:
        at = address - BASE
        piece = head[at : at + 8 * count].ljust(8 * count, b"\0") if 0 <= at < PAGE else b""
        return struct.unpack(f"<{len(piece) // 8}Q", piece)

    entries = [
        *before,
        module(BASE, BASE + PAGE, 0),
        module(BASE + PAGE, BASE + 3 * PAGE, PAGE, executable=True),
        module(BASE + 3 * PAGE, FILE_END, 3 * PAGE, writable=True),
        MapsEntry(FILE_END, FILE_END + behind, False, True, 0, "00:00", 0, ""),
    ]
    found = layout(entries, (), 0, words, touched=lambda _: True)
    return [(r.start - FILE_END, r.end - FILE_END, r.kind) for r in found.scanned if r.start >= FILE_END]


WITH_BSS = elf((1, 0, 0x2F00), (6, 0x40, 0x99999), (1, 0x3100, 0x4321))  # ends in the page after 0x7000


def test_what_is_behind_the_data_is_the_programs_own() -> None:
    assert kinds(WITH_BSS, 0x9000) == [(0, 0x3000, RegionKind.GLOBAL), (0x3000, 0x9000, RegionKind.MAPPING)]


@pytest.mark.parametrize("behind", [0x1000, 0x3000])
def test_all_of_it_may_be_data(behind: int) -> None:
    assert kinds(WITH_BSS, behind) == [(0, behind, RegionKind.GLOBAL)]


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_a_jit_maps_twice_is_no_binary(is_shared: bool) -> None:
    """The view that is executed was called lost, since a binary's code is nobody's, and the other one a root."""
    view = MapsEntry(BASE, BASE + PAGE, True, False, 0, "00:01", 7, "/memfd:jit (deleted)", shared=is_shared)
    other = view._replace(start=BASE + PAGE, end=BASE + 2 * PAGE, executable=False, writable=True)
    behind = MapsEntry(BASE + 2 * PAGE, BASE + 3 * PAGE, False, True, 0, "00:00", 0, "")
    found = layout([view, other, behind], (), 0, lambda address, count: (0,) * count, touched=lambda _: True)
    places = [((r.start - BASE) // PAGE, r.kind) for r in found.scanned]
    if is_shared:
        assert places == [(0, RegionKind.MAPPING), (1, RegionKind.MAPPING), (2, RegionKind.MAPPING)]
        assert (BASE, BASE + PAGE) in found.targets
    else:
        assert places == [(1, RegionKind.GLOBAL), (2, RegionKind.GLOBAL)]
        assert (BASE, BASE + PAGE) not in found.targets


def test_a_module_may_have_no_more_data() -> None:
    assert kinds(elf((1, 0, 0x2F00), (1, 0x3100, 0x1F00)), 0x9000) == [(0, 0x9000, RegionKind.MAPPING)]


@pytest.mark.parametrize(
    "head",
    [
        b"", elf((1, 0, 0x8000), magic=b"\x7fELF\x01"), elf((1, 0, 0x8000), size=64), elf((6, 0, 0x8000)),
        elf((1, 0, 0x100)), elf(*[(1, 0, 0x8000)] * 2000),
    ],
)  # fmt: skip
def test_headers_that_make_no_sense_say_nothing(head: bytes) -> None:
    assert kinds(head, 0x9000) == [(0, 0x9000, RegionKind.GLOBAL)]


def test_a_position_independent_binary_begins_where_it_was_put() -> None:
    assert kinds(elf((1, 0x400000, 0x2F00), (1, 0x403100, 0x4321)), 0x9000) == kinds(WITH_BSS, 0x9000)


def test_headers_of_another_module_are_not_asked() -> None:
    other = MapsEntry(BASE - PAGE, BASE, True, False, 0, "08:01", 8, "/lib/other.so")
    assert kinds(WITH_BSS, 0x9000, [other]) == kinds(WITH_BSS, 0x9000)


def test_where_no_page_is_an_arena_is_not_looked_for() -> None:
    """To read a page there would give the process page tables: of terabytes, some for each 64 MiB."""
    start, asked = 0x7E0000000000, []
    entry = MapsEntry(start, start + (5 << 26), False, True, 0, "00:00", 0, "")

    def words(address: int, count: int) -> Sequence[int]:
        asked.append(address)
        return [address + 0x30, 0, 0x21000, 0x21000][:count]

    found = layout([entry], (), 0, words, touched=lambda address: address == start + (3 << 26))
    assert asked == [start + (3 << 26)]
    assert [(r.start - start, r.kind) for r in found.scanned] == [
        (0, RegionKind.MAPPING), (3 << 26, RegionKind.ALLOCATOR), ((3 << 26) + 0x21000, RegionKind.MAPPING),
    ]  # fmt: skip
