from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from frame_bytes import EhFrame, common, elf, record
from hypothesis import given, settings
from hypothesis import strategies as st
from readelf_frames import readelf_functions

from tracer.cfi.call_frames import FrameSource
from tracer.cfi.unwind_rules import Rule
from tracer.cfi.unwind_table import (
    ENTRY_BYTES,
    MAX_PAGES,
    UnwindTable,
    build_table,
    build_table_from_memory,
    lookup,
    start_of,
    table_of_sources,
)
from tracer.elf.image import PF_X, PT_LOAD, Image, Segment
from tracer.errors import RefleakError
from tracer.model.records import RULE, RuleKind

TEXT = 0x401000
FRAMES = 0x500000
PUSH = b"\x41\x0e\x10"  # a byte on: rsp+16
NONE = Rule(RuleKind.NONE)
AT_ENTRY, PUSHED = Rule(RuleKind.STACK_POINTER, 0, 0, 8), Rule(RuleKind.STACK_POINTER, 0, 0, 16)
UNSUPPORTED = Rule(RuleKind.UNSUPPORTED)


def frames() -> EhFrame:
    return EhFrame(FRAMES).common()


def table_of(frame: EhFrame) -> UnwindTable:
    table = build_table_from_memory(frame.end(), frame.address)
    assert table is not None
    return table


def listed(table: UnwindTable) -> list[tuple[int, Rule]]:
    """Every row as an address and what a lookup there says."""
    found = []
    for page in range(len(table.pages) - 1):
        for row in table.rows[table.pages[page] : table.pages[page + 1]]:
            address = (table.first_link_page + page << 12) + int(row >> 20)
            found.append((address, lookup(table, address)))
    return found


def check(table: UnwindTable) -> None:
    """What the BPF search relies on."""
    assert table.pages.dtype == table.rows.dtype == np.uint32
    assert table.rules.dtype == RULE
    assert table.pages[0] == 0
    assert table.pages[-1] == len(table.rows)
    assert (np.diff(table.pages.astype(np.int64)) >= 1).all()
    assert (np.diff(table.pages.astype(np.int64)) <= 4096).all()
    assert len(table.pages) - 1 <= MAX_PAGES
    low = (table.rows >> 20).astype(np.int64)
    assert (low[table.pages[:-1]] == 0).all()
    inner = np.ones(len(low) - 1, bool)
    inner[table.pages[1:-1] - 1] = False
    assert (np.diff(low)[inner] > 0).all()
    assert (table.rows & 0xFFFFF).max() < len(table.rules)
    assert table.rules[0].item() == (0, 0, 0, 0)


def test_rows_of_two_functions_exactly() -> None:
    table = table_of(frames().function(TEXT + 0x10, 0x20, PUSH).function(TEXT + 0x40, 0x20))
    assert table.first_link_page == 0x401
    assert table.pages.tolist() == [0, 6]
    assert [(row >> 20, row & 0xFFFFF) for row in table.rows.tolist()] == [
        (0, 0), (0x10, 2), (0x11, 3), (0x30, 0), (0x40, 2), (0x60, 0),
    ]  # fmt: skip
    assert table.rules.tolist() == [(0, 0, 0, 0), (7, 0, 0, 0), (1, 0, 0, 8), (1, 0, 0, 16)]


@pytest.mark.parametrize(("gap", "none"), [(0, False), (15, False), (16, True)])
def test_padding_between_functions_is_no_gap(gap: int, none: bool) -> None:
    table = table_of(frames().function(TEXT, 32, PUSH).function(TEXT + 32 + gap, 32))
    assert lookup(table, TEXT + 31) == PUSHED
    assert lookup(table, TEXT + 32) == (NONE if none else PUSHED if gap else AT_ENTRY)
    assert lookup(table, TEXT + 32 + gap) == AT_ENTRY
    assert lookup(table, TEXT + 64 + gap) == NONE


def test_equal_rules_in_a_row_are_one() -> None:
    table = table_of(frames().function(TEXT, 32).function(TEXT + 32, 32).function(TEXT + 64, 32))
    assert listed(table) == [(TEXT, AT_ENTRY), (TEXT + 96, NONE)]


def test_each_page_begins_with_the_rule_in_force() -> None:
    table = table_of(frames().function(TEXT + 0xFF0, 0x2010, PUSH))
    assert listed(table) == [
        (TEXT, NONE), (TEXT + 0xFF0, AT_ENTRY), (TEXT + 0xFF1, PUSHED),
        (TEXT + 0x1000, PUSHED), (TEXT + 0x2000, PUSHED),
    ]  # fmt: skip
    assert table.pages.tolist() == [0, 3, 4, 5]
    assert lookup(table, TEXT + 0x3000) == NONE
    assert lookup(table, TEXT - 1) == NONE


def test_functions_may_come_in_any_order_and_the_later_start_wins() -> None:
    table = table_of(frames().function(TEXT + 0x20, 0x10, PUSH).function(TEXT, 0x100))
    assert listed(table) == [
        (TEXT, AT_ENTRY), (TEXT + 0x21, PUSHED), (TEXT + 0x30, NONE),
    ]  # fmt: skip


def test_rows_past_the_functions_end_are_cut() -> None:
    table = table_of(frames().function(TEXT, 8, b"\x44\x0e\x10\x44\x0e\x18\x44\x0e\x20"))
    assert listed(table) == [(TEXT, AT_ENTRY), (TEXT + 4, PUSHED), (TEXT + 8, NONE)]


def test_a_damaged_function_is_unsupported_not_none() -> None:
    table = table_of(frames().function(TEXT, 16, b"\x3f").function(TEXT + 16, 16))
    assert listed(table) == [(TEXT, UNSUPPORTED), (TEXT + 16, AT_ENTRY), (TEXT + 32, NONE)]


def test_every_byte_of_a_page_may_begin_a_row() -> None:
    program = b"".join(b"\x0e" + bytes([8 if i % 2 else 16]) + b"\x41" for i in range(5000))
    table = table_of(frames().function(TEXT, 5000, program))
    check(table)
    assert np.diff(table.pages).tolist() == [4096, 905]
    assert [lookup(table, TEXT + i).offset for i in range(5000)] == [8 if i % 2 else 16 for i in range(5000)]


def test_a_hole_costs_a_row_a_page() -> None:
    table = table_of(frames().function(TEXT, 16).function(TEXT + 0x64000, 16))
    check(table)
    assert len(table.pages) - 1 == 101
    assert len(table.rows) == 2 + 99 + 2


def test_what_is_too_far_away_has_no_table() -> None:
    data = bytes(common(augmentation=b"", data=b""))
    starts = [0x10000, *(0x7F00_0000_0000 + 64 * i for i in range(3)), 0x7FFF_0000_0000]
    for start in starts:
        body = (len(data) + 4).to_bytes(4, "little") + start.to_bytes(8, "little") + (64).to_bytes(8, "little")
        data += record(body)
    table = build_table_from_memory(data + b"\0\0\0\0", 0x7F00_0010_0000)
    assert table is not None
    check(table)
    assert table.first_link_page == 0x7F00_0000_0
    assert listed(table) == [(starts[1], AT_ENTRY), (starts[1] + 192, NONE)]


def test_a_function_longer_than_the_table_can_be_is_cut() -> None:
    table = table_of(frames().function(TEXT, 0xFFFFFFFF))
    check(table)
    assert len(table.pages) - 1 == MAX_PAGES


def test_nothing_to_unwind_is_none() -> None:
    assert build_table_from_memory(b"", 0) is None
    assert build_table_from_memory(frames().end(), FRAMES) is None
    assert build_table(Image(elf([], [(TEXT, 0x1000)]))) is None
    outside = frames().function(0x900000, 16).end()
    assert build_table(Image(elf([(".eh_frame", FRAMES, outside)], [(TEXT, 0x1000)]))) is None


def test_functions_are_cut_to_executable_segments() -> None:
    data = frames().function(TEXT + 0xFF0, 0x100, PUSH).function(0x900000, 0x10).end()
    table = build_table(Image(elf([(".eh_frame", FRAMES, data)], [(TEXT, 0x1000)])))
    assert table is not None
    assert listed(table) == [(TEXT, NONE), (TEXT + 0xFF0, AT_ENTRY), (TEXT + 0xFF1, PUSHED)]


@pytest.mark.parametrize(
    "pointer", [b"\x1b\x03\x3b" + (0xFFC).to_bytes(4, "little"), b"\x03\x03\x3b" + FRAMES.to_bytes(4, "little")]
)
def test_without_section_headers_the_program_header_leads_to_it(pointer: bytes) -> None:
    header = (b"\x01" + pointer).ljust(12, b"\0")
    data = frames().function(TEXT, 16, PUSH).end() + b"\xff" * 40
    sections = [(".eh_frame_hdr", FRAMES - 0x1000, header), (".eh_frame", FRAMES, data)]
    image = Image(elf(sections, [(TEXT, 0x1000)], header_at=FRAMES - 0x1000))
    assert image.sections == ()
    table = build_table(image)
    assert table is not None
    assert listed(table) == [(TEXT, AT_ENTRY), (TEXT + 1, PUSHED), (TEXT + 16, NONE)]


def test_debug_frame_adds_what_eh_frame_leaves_out() -> None:
    debug = common(augmentation=b"", mark=b"\xff\xff\xff\xff")
    for start, length in ((TEXT + 0x40, 0x20), (TEXT + 0x8, 0x4), (TEXT + 0x10, 0x40), (TEXT + 0x60, 0x20)):
        debug += record(b"\0\0\0\0" + start.to_bytes(8, "little") + length.to_bytes(8, "little") + PUSH)
    eh_frame = frames().function(TEXT, 0x40).end()
    sections = [(".eh_frame", FRAMES, eh_frame), (".debug_frame", 0, debug)]
    table = build_table(Image(elf(sections, [(TEXT, 0x1000)])))
    assert table is not None
    assert listed(table) == [
        (TEXT, AT_ENTRY), (TEXT + 0x41, PUSHED), (TEXT + 0x60, AT_ENTRY), (TEXT + 0x61, PUSHED), (TEXT + 0x80, NONE),
    ]  # fmt: skip
    alone = build_table(Image(elf([(".debug_frame", 0, debug)], [(TEXT, 0x1000)])))
    assert alone is not None
    assert lookup(alone, TEXT + 8) == AT_ENTRY


def test_debug_frame_adds_nothing_inside_a_function_around_another() -> None:
    debug = common(augmentation=b"", mark=b"\xff\xff\xff\xff")
    debug += record(b"\0\0\0\0" + (TEXT + 0x50).to_bytes(8, "little") + (16).to_bytes(8, "little") + PUSH)
    eh_frame = frames().function(TEXT, 0x100).function(TEXT + 0x20, 0x10).end()
    table = build_table(Image(elf([(".eh_frame", FRAMES, eh_frame), (".debug_frame", 0, debug)], [(TEXT, 0x1000)])))
    assert table is not None
    assert listed(table) == [(TEXT, AT_ENTRY), (TEXT + 0x30, NONE)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (TEXT + 0x40, [(TEXT + 0x40, Rule(RuleKind.END)), (TEXT + 0x60, AT_ENTRY), (TEXT + 0x80, NONE)]),
        (TEXT + 0x200, [(TEXT + 0x20, NONE), (TEXT + 0x60, AT_ENTRY), (TEXT + 0x80, NONE),
                        (TEXT + 0x200, Rule(RuleKind.END)), (TEXT + 0x200 + ENTRY_BYTES, NONE)]),
        (TEXT + 0x10, [(TEXT + 0x20, NONE), (TEXT + 0x60, AT_ENTRY), (TEXT + 0x80, NONE)]),
        (0, [(TEXT + 0x20, NONE), (TEXT + 0x60, AT_ENTRY), (TEXT + 0x80, NONE)]),
    ],
)  # fmt: skip
def test_a_stack_ends_at_the_entry_point(entry: int, expected: list[tuple[int, Rule]]) -> None:
    """Unless a function with a table stands there, which then says so itself."""
    source = FrameSource(frames().function(TEXT, 0x20).function(TEXT + 0x60, 0x20).end(), FRAMES)
    table = table_of_sources([source], [], entry)
    assert table is not None
    check(table)
    assert [row for row in listed(table)[1:] if row[0] >= TEXT + 0x20] == (
        [(TEXT + 0x20, NONE), *expected] if expected[0][0] != TEXT + 0x20 else expected
    )


def expected_rule(columns: dict[str, str]) -> Rule | None:
    """The rule that readelf's columns ask for; None where they do not say enough."""
    rbp, rsp = columns.get("rbp", "u"), columns.get("rsp", "u")
    cfa = re.fullmatch(r"(rsp|rbp)([+-]\d+)", columns["CFA"])
    if columns["ra"] == "u":
        return Rule(RuleKind.END)
    if columns["CFA"] == "exp":
        return None
    if not cfa or columns["ra"] != "c-8" or rsp not in "us" or not re.fullmatch(r"u|s|c[+-]\d+", rbp):
        return UNSUPPORTED
    saved, rbp_offset = (0, 0) if rbp in "us" else (1, int(rbp[1:]))
    return Rule(RuleKind.STACK_POINTER if cfa[1] == "rsp" else RuleKind.FRAME_POINTER, saved, rbp_offset, int(cfa[2]))


def system_binaries() -> list[Path]:
    named = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/git"]
    named += [str(path) for path in Path("/usr/lib/x86_64-linux-gnu").glob("libpython3.*.so.1.0")]
    named += ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"]
    others = sorted(p for p in Path("/usr/lib/x86_64-linux-gnu").glob("*.so*") if p.is_file() and not p.is_symlink())
    small = [path for path in others if 20_000 < path.stat().st_size < 400_000]
    sample = random.Random(20).sample(small, min(14, len(small)))
    return [path for path in map(Path, named) if path.exists()] + sample


@pytest.mark.skipif(not shutil.which("readelf"), reason="readelf (binutils) is not installed")
@pytest.mark.parametrize("path", system_binaries(), ids=lambda path: path.name)
def test_every_row_agrees_with_readelf(path: Path) -> None:
    """Every row of readelf is looked up, and the table changes at no address that readelf does not list."""
    try:
        image = Image.open(path)
        table = build_table(image)
    except RefleakError:
        pytest.skip("not for this machine")
    functions = list(readelf_functions(path))
    if table is None:
        assert not functions
        return
    check(table)
    changes, wrong, compared = {start_of(image)}, [], 0
    for function in functions:
        changes |= {function.start, function.end, *function.rows}
        for address, columns in function.rows.items():
            expected, found = expected_rule(columns), lookup(table, address)
            compared += 1
            if expected is None:
                special = (
                    RuleKind.PLT, RuleKind.DEREFERENCE, RuleKind.REALIGNED, RuleKind.SIGNAL, RuleKind.UNSUPPORTED,
                )  # fmt: skip
                wrong += [(hex(address), columns, found)] if found.kind not in special else []
            elif found != expected:
                wrong.append((hex(address), columns, found))
    assert wrong == []
    assert compared > 0
    assert [hex(a) for a, _ in listed(table) if a & 0xFFF and a not in changes] == []


@pytest.fixture(scope="module")
def real_frames() -> tuple[bytes, int]:
    image = Image.open("/proc/self/exe")
    section = image.section(".eh_frame")
    assert section is not None
    return bytes(image.contents(section)[:4000]), section.link_address


@settings(max_examples=200, deadline=None)
@given(flips=st.lists(st.tuples(st.integers(0, 3999), st.integers(0, 7)), min_size=1, max_size=8))
def test_flipped_bits_never_raise_and_keep_the_tables_form(
    real_frames: tuple[bytes, int], flips: list[tuple[int, int]]
) -> None:
    data = bytearray(real_frames[0])
    for at, bit in flips:
        data[at % len(data)] ^= 1 << bit
    table = build_table_from_memory(bytes(data), real_frames[1])
    if table is not None:
        check(table)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=64, max_size=600))
def test_random_files_never_raise(data: bytes) -> None:
    whole = elf([(".eh_frame", FRAMES, data), (".debug_frame", 0, data[::-1])], [(TEXT, 0x1000)])
    table = build_table(Image(whole))
    if table is not None:
        check(table)
    build_table(Image(whole[:64] + data + whole[64 + len(data) :]))


FAR = (1 << 64) - 1


def damaged(position: int, number: int = FAR) -> Image:
    """Return a file with a table whose header has a wrong number at a position of its first segment's or its own."""
    header = b"\x01\x1b\x03\x3b".ljust(12, b"\0")
    sections = [(".eh_frame_hdr", FRAMES - 0x1000, header)]
    data = bytearray(elf(sections, [(TEXT, 0x1000)], header_at=FRAMES - 0x1000))
    data[position : position + 8] = number.to_bytes(8, "little")
    return Image(bytes(data), "damaged")


def test_numbers_beyond_all_addresses_never_raise() -> None:
    """Each number of the headers, one after the other, is one that fits into no signed number of 64 bits."""
    for position in range(24, 24 + 40 + 4 * 56, 4):
        build_table(damaged(position))


@pytest.mark.parametrize(("address", "size"), [(FAR, 16), (1 << 63, 1 << 62), (TEXT, FAR)])
def test_segments_beyond_all_addresses_cut_like_others(address: int, size: int) -> None:
    segments = [Segment(PT_LOAD, PF_X, 0, address, 16, size)]
    table = table_of_sources([FrameSource(frames().function(TEXT, 16).end(), FRAMES)], segments)
    assert (table is not None) == (address == TEXT)


@pytest.mark.parametrize("entry", [FAR, 1 << 63, (1 << 63) - 1])
def test_an_entry_point_beyond_all_addresses_is_none(entry: int) -> None:
    table = table_of_sources([FrameSource(frames().function(TEXT, 16).end(), FRAMES)], [], entry)
    assert table is not None
    assert table.first_link_page == TEXT >> 12
