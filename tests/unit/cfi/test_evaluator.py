"""Rows of all registers, against pyelftools on the machine's own binaries, and instruction by instruction."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE, CFARule, RegisterRule
from elftools.elf.elffile import ELFFile
from frame_bytes import EhFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cfi.call_frames import Fde, FrameSource, read_programs
from tracer.cfi.evaluator import RegisterRow, Saved, Where, row_at
from tracer.cfi.fde_index import FrameIndex
from tracer.cfi.frame_source import frame_sources, search_table
from tracer.elf.image import PT_GNU_EH_FRAME, Image

START = 0x401000
ENTRY = RegisterRow((7, 8), {16: Saved(Where.AT_OFFSET, -8)})
MOST_FUNCTIONS = 400
GNU_ARGS_SIZE = 0x2E
LIBRARIES = [path for path in (
    "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", sys.executable,
) if Path(path).exists()]  # fmt: skip


def made(code: bytes, **options: object) -> Fde:
    frame = EhFrame(0x500000).common(**options).function(START, 0x10000, code)
    [function] = read_programs(FrameSource(frame.data, 0x500000))
    return function


def with_saved(**saved: Saved) -> RegisterRow:
    return RegisterRow(ENTRY.cfa, ENTRY.saved | {int(name[1:]): place for name, place in saved.items()})


@pytest.mark.parametrize(
    ("program", "after"),
    [
        (b"\x0e\x10", RegisterRow((7, 16), ENTRY.saved)),  # def_cfa_offset
        (b"\x0c\x03\x20", RegisterRow((3, 32), ENTRY.saved)),  # def_cfa
        (b"\x0d\x0c", RegisterRow((12, 8), ENTRY.saved)),  # def_cfa_register
        (b"\x12\x06\x7d", RegisterRow((6, 24), ENTRY.saved)),  # def_cfa_sf
        (b"\x13\x7e", RegisterRow((7, 16), ENTRY.saved)),  # def_cfa_offset_sf
        (b"\x0f\x03\x77\x08\x06", RegisterRow(b"\x77\x08\x06", ENTRY.saved)),  # def_cfa_expression
        (b"\x83\x02", with_saved(r3=Saved(Where.AT_OFFSET, -16))),  # offset
        (b"\x05\x0f\x03", with_saved(r15=Saved(Where.AT_OFFSET, -24))),  # offset_extended
        (b"\x11\x0f\x7f", with_saved(r15=Saved(Where.AT_OFFSET, 8))),  # offset_extended_sf
        (b"\x2f\x0f\x02", with_saved(r15=Saved(Where.AT_OFFSET, 16))),  # GNU_negative_offset_extended
        (b"\x14\x0c\x02", with_saved(r12=Saved(Where.IS_OFFSET, -16))),  # val_offset
        (b"\x15\x0c\x7e", with_saved(r12=Saved(Where.IS_OFFSET, 16))),  # val_offset_sf
        (b"\x09\x06\x0c", with_saved(r6=Saved(Where.REGISTER, 12))),  # register
        (b"\x10\x0d\x02\x76\x00", with_saved(r13=Saved(Where.AT_EXPRESSION, b"\x76\x00"))),  # expression
        (b"\x16\x0d\x02\x76\x00", with_saved(r13=Saved(Where.IS_EXPRESSION, b"\x76\x00"))),  # val_expression
        (b"\x07\x10", with_saved(r16=Saved(Where.UNDEFINED))),  # undefined
        (b"\x83\x02\x08\x03", ENTRY),  # same_value
        (b"\x83\x02\xc3", ENTRY),  # restore
        (b"\x07\x10\xd0", ENTRY),
        (b"\x05\x10\x03\x06\x10", ENTRY),  # restore_extended
        (b"\x0a\x83\x02\x0c\x06\x20\x0b", ENTRY),  # remember_state, restore_state
        (b"\x2e\x20\x00\x40", ENTRY),  # GNU_args_size, nop, an advance by nothing
    ],
)
def test_each_instruction_changes_what_it_says(program: bytes, after: RegisterRow) -> None:
    function = made(b"\x44" + program + b"\x44\x0e\x7f")
    assert [row_at(function, START + at) for at in (0, 3, 4, 7)] == [ENTRY, ENTRY, after, after]


@pytest.mark.parametrize("advance", [b"\x50", b"\x02\x10", b"\x03\x10\x00", b"\x04\x10\x00\x00\x00"])
def test_each_advance(advance: bytes) -> None:
    function = made(advance + b"\x0e\x10")
    assert [row_at(function, START + at) for at in (15, 16)] == [ENTRY, RegisterRow((7, 16), ENTRY.saved)]


@pytest.mark.parametrize("program", [b"\x1f", b"\x0b", b"\x0f\x09\x77", b"\x0f\x01\x9c\x0e\x10"])
def test_a_program_that_makes_no_sense_has_no_rows(program: bytes) -> None:
    assert row_at(made(program), START + 20) is None


@settings(max_examples=300)
@given(st.binary(max_size=60), st.integers(0, 0x10000))
def test_any_program_ends(program: bytes, distance: int) -> None:
    row_at(made(program), START + distance)


Row = tuple[object, dict[int, tuple[str, object]]]


def told_by_pyelftools(path: str) -> Iterator[tuple[int, int, Row]]:
    """Yield (address, end, row) of a sample of functions."""
    with open(path, "rb") as file:
        entries = [
            e for e in ELFFile(file).get_dwarf_info().EH_CFI_entries()
            if isinstance(e, FDE) and all(i.opcode != GNU_ARGS_SIZE for i in e.instructions)  # unknown to it
        ]  # fmt: skip
        for entry in entries[:: max(1, len(entries) // MOST_FUNCTIONS)]:
            table = entry.get_decoded().table
            end = entry["initial_location"] + entry["address_range"]
            for row, following in zip(table, [*(r["pc"] for r in table[1:]), end], strict=True):
                if row["pc"] < following:
                    yield row["pc"], following, _row(row)


def _row(row: dict[object, object]) -> Row:
    cfa = row["cfa"]
    assert isinstance(cfa, CFARule)
    rules = {n: r for n, r in row.items() if isinstance(n, int) and isinstance(r, RegisterRule)}
    return (
        bytes(cfa.expr) if cfa.expr is not None else (cfa.reg, cfa.offset),
        {n: (r.type, bytes(r.arg) if isinstance(r.arg, list) else r.arg) for n, r in rules.items()
         if r.type != RegisterRule.SAME_VALUE},
    )  # fmt: skip


_TYPES = {
    Where.UNDEFINED: RegisterRule.UNDEFINED, Where.AT_OFFSET: RegisterRule.OFFSET,
    Where.IS_OFFSET: RegisterRule.VAL_OFFSET, Where.REGISTER: RegisterRule.REGISTER,
    Where.AT_EXPRESSION: RegisterRule.EXPRESSION, Where.IS_EXPRESSION: RegisterRule.VAL_EXPRESSION,
}  # fmt: skip


def told(row: RegisterRow | None) -> Row | None:
    if row is None:
        return None
    values = {n: None if s.where is Where.UNDEFINED else s.value for n, s in row.saved.items()}
    return row.cfa, {n: (_TYPES[s.where], values[n]) for n, s in row.saved.items()}


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: Path(path).name)
def test_the_linkers_table_finds_what_all_records_say(path: str) -> None:
    image = Image.open(path)
    (source, *_), index = frame_sources(image), FrameIndex(image)
    functions = sorted(read_programs(source), key=lambda function: function.start)
    assert search_table(image) is not None
    for function, behind in pairwise(functions[:: max(1, len(functions) // MOST_FUNCTIONS)]):
        assert index.find(function.start) == index.find(function.end - 1) == function
        gap = next(f for f in (*functions, behind) if f.start >= function.end)
        if gap.start > function.end:
            assert index.find(function.end) is None
    assert index.find(functions[0].start - 1) is None
    assert index.find(functions[-1].end) is None


def with_header(image: Image, at: int, changed: bytes) -> Image:
    """Return a copy of a binary with other bytes in its .eh_frame_hdr."""
    header = next(segment for segment in image.segments if segment.type == PT_GNU_EH_FRAME)
    data = bytearray(image.data[:])
    data[header.file_offset + at : header.file_offset + at + len(changed)] = changed
    return Image(bytes(data), "changed")


def test_a_function_that_the_table_lacks_is_found() -> None:
    image = Image.open(LIBRARIES[0])
    shortened, last = with_header(image, 8, (10).to_bytes(4, "little")), read_programs(frame_sources(image)[0])[-1]
    table = search_table(shortened)
    assert table is not None and len(table[0]) == 10
    assert FrameIndex(shortened).find(last.start) == last


def test_a_header_of_another_form_is_not_followed() -> None:
    image = Image.open(LIBRARIES[0])
    for at, byte in ((0, 2), (2, 0x0B), (3, 0x1B), (7 + 4, 0x7F)):
        damaged = with_header(image, at, bytes([byte]))
        assert search_table(damaged) is None
        assert FrameIndex(damaged).find(next(iter(read_programs(frame_sources(image)[0]))).start) is not None


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: Path(path).name)
def test_rows_are_those_of_pyelftools(path: str) -> None:
    index, rows = FrameIndex(Image.open(path)), 0
    for address, end, expected in told_by_pyelftools(path):
        function = index.find(address)
        assert function is not None
        for at in (address, end - 1):
            assert told(row_at(function, at)) == expected, hex(at)
            assert told(index.row_at(function, at)) == expected, hex(at)
        rows += 1
    assert rows > 100
