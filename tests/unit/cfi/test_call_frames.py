from __future__ import annotations

import struct

import pytest
from frame_bytes import FIRST_ROW, EhFrame, common, record, sleb, uleb
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cfi.call_frames import CallFrames, FrameSource, decode
from tracer.cfi.rows import UNREADABLE, State

START = 0x401000
ENTRY = State(7, 8, "same", -8, "same")


def rows_of(frames: CallFrames, function: int = 0) -> list[tuple[int, State]]:
    program, rows = int(frames.programs[function]), frames.rows
    span = range(rows.first_rows[program], rows.first_rows[program + 1])
    return [(rows.distances[i], rows.states[rows.indexes[i]][0]) for i in span]


def run(code: bytes, **options: object) -> list[tuple[int, State]]:
    frame = EhFrame(0x500000).common(**options).function(START, 0x1000000, code)
    return rows_of(decode(FrameSource(frame.data, 0x500000)))


def ranges(frames: CallFrames) -> list[tuple[int, int, bool]]:
    return [
        (int(s), int(e), p != 0) for s, e, p in zip(frames.starts, frames.ends, frames.programs, strict=True)
    ]


@pytest.mark.parametrize(
    ("program", "after"),
    [
        (b"\x0e\x10", ENTRY._replace(offset=16)),  # def_cfa_offset
        (b"\x0e\x80\x02", ENTRY._replace(offset=256)),
        (b"\x0c\x06\x20", ENTRY._replace(register=6, offset=32)),  # def_cfa
        (b"\x0d\x06", ENTRY._replace(register=6)),  # def_cfa_register
        (b"\x12\x06\x7d", ENTRY._replace(register=6, offset=24)),  # def_cfa_sf
        (b"\x13\x7e", ENTRY._replace(offset=16)),  # def_cfa_offset_sf
        (b"\x0f\x03\x77\x08\x06", ENTRY._replace(register=b"\x77\x08\x06")),  # def_cfa_expression
        (b"\x86\x02", ENTRY._replace(fp=-16)),  # offset
        (b"\x86\x90\x01", ENTRY._replace(fp=-1152)),
        (b"\x87\x02", ENTRY._replace(sp=-16)),
        (b"\x90\x02", ENTRY._replace(return_address=-16)),
        (b"\x05\x06\x03", ENTRY._replace(fp=-24)),  # offset_extended
        (b"\x05\x10\x81\x01", ENTRY._replace(return_address=-1032)),
        (b"\x11\x06\x7f", ENTRY._replace(fp=8)),  # offset_extended_sf
        (b"\x2f\x06\x02", ENTRY._replace(fp=16)),  # GNU_negative_offset_extended
        (b"\x07\x10", ENTRY._replace(return_address="undefined")),  # undefined
        (b"\x07\x06", ENTRY._replace(fp="undefined")),
        (b"\x86\x02\x08\x06", ENTRY),  # same_value: nothing changes, so the row before goes on
        (b"\x09\x06\x0a", ENTRY._replace(fp="elsewhere")),  # register
        (b"\x09\x10\x05", ENTRY._replace(return_address="elsewhere")),
        (b"\x09\x07\x08", ENTRY._replace(sp="elsewhere")),
        (b"\x14\x06\x02", ENTRY._replace(fp="elsewhere")),  # val_offset
        (b"\x15\x06\x7e", ENTRY._replace(fp="elsewhere")),  # val_offset_sf
        (b"\x10\x06\x02\x76\x00", ENTRY._replace(fp=b"\x76\x00")),  # expression
        (b"\x10\x10\x03\x77\xa8\x01", ENTRY._replace(return_address=b"\x77\xa8\x01")),
        (b"\x16\x06\x02\x76\x00", ENTRY._replace(fp="elsewhere")),  # val_expression
        (b"\x86\x02\xc6", ENTRY),  # restore
        (b"\x90\x02\xd0", ENTRY),
        (b"\x87\x02\xc7", ENTRY),
        (b"\x05\x06\x02\x06\x06", ENTRY),  # restore_extended
        (b"\x07\x10\x06\x10", ENTRY),
        (b"\x2e\x20", ENTRY),  # GNU_args_size
        (b"\x00\x40", ENTRY),  # nop, an advance by nothing
        (b"\x83\x02\x0a\x0b\xc3\x05\x0f\x03\x09\x0f\x03\x10\x0f\x01\x00\x16\x0f\x01\x00", ENTRY),  # other registers
    ],
)
def test_each_instruction_changes_what_it_says(program: bytes, after: State) -> None:
    expected = [(0, ENTRY)] if after == ENTRY else [(0, ENTRY), (4, after)]
    assert run(b"\x44" + program + b"\x44") == expected


@pytest.mark.parametrize(
    ("advance", "distance"),
    [
        (b"\x41", 1), (b"\x7f", 63), (b"\x02\xff", 255),
        (b"\x03\x34\x12", 0x1234), (b"\x04\x78\x56\x34\x00", 0x345678),
    ],
)  # fmt: skip
def test_each_advance_moves_by_its_operand(advance: bytes, distance: int) -> None:
    deeper = ENTRY._replace(offset=16)
    assert run(advance + b"\x0e\x10") == [(0, ENTRY), (distance, deeper)]
    assert run(advance + b"\x0e\x10", code_factor=2) == [(0, ENTRY), (2 * distance, deeper)]


def test_remembered_states_nest_and_bring_back_the_cfa() -> None:
    program = b"\x41\x0a\x0c\x06\x10\x86\x02\x41\x0a\x0e\x30\x41\x0b\x41\x0b"
    pushed = State(6, 16, -16, -8, "same")
    assert run(program) == [(0, ENTRY), (1, pushed), (2, pushed._replace(offset=48)), (3, pushed), (4, ENTRY)]


def test_the_initial_state_is_the_common_entrys_own() -> None:
    assert run(b"\x41\x08\x06\x41\xc6", program=FIRST_ROW + b"\x86\x02") == [
        (0, ENTRY._replace(fp=-16)), (1, ENTRY), (2, ENTRY._replace(fp=-16)),
    ]  # fmt: skip
    assert run(b"", program=b"\x0c\x07\x08") == [(0, ENTRY._replace(return_address="same"))]


@pytest.mark.parametrize(
    "program",
    [
        b"\x0b", b"\x0e", b"\x0e\x80", b"\x86", b"\x86\xff", b"\x02", b"\x03\x01", b"\x04\x01\x02\x03", b"\x0c\x07",
        b"\x0f\x05\x77", b"\x10\x06\x7f\x00", b"\x3f", b"\x01\0\0\0\0\0\0\0\0", b"\x2d",
        b"\x0e" + b"\x80" * 11 + b"\x01", b"\x04\xff\xff\xff\xff\x04\xff\xff\xff\xff\x0e\x10",
    ],
)  # fmt: skip
def test_a_damaged_program_loses_only_its_function(program: bytes) -> None:
    frame = EhFrame(0).common().function(START, 16, b"\x41\x0e\x10")
    at = len(frame.data)
    # without padding, so that a nop cannot stand in for what is missing
    place = struct.pack("<iI", START + 16 - at - 8, 16)
    frame.data += struct.pack("<II", 9 + 4 + len(program), at + 4) + place + b"\0" + program
    frame.function(START + 32, 16, b"\x41\x0e\x10")
    frames = decode(FrameSource(frame.data, 0))
    assert ranges(frames) == [
        (START, START + 16, True), (START + 16, START + 32, False), (START + 32, START + 48, True),
    ]  # fmt: skip
    assert rows_of(frames, 1) == [(0, UNREADABLE)]
    assert rows_of(frames, 2) == [(0, ENTRY), (1, ENTRY._replace(offset=16))]


@pytest.mark.parametrize(
    ("encoding", "place"),
    [
        (0x00, struct.pack("<QQ", START, 32)),
        (0x04, struct.pack("<QQ", START, 32)),
        (0x03, struct.pack("<II", START, 32)),
        (0x1B, struct.pack("<iI", START - 0x500000, 32)),
        (0x1C, struct.pack("<qQ", START - 0x500000, 32)),
        (0x23, struct.pack("<II", 0x1000, 32)),
        (0x3B, struct.pack("<iI", START - 0x600000, 32)),
    ],
)
def test_each_pointer_encoding(encoding: int, place: bytes) -> None:
    first = common(data=bytes([encoding]))
    body = struct.pack("<I", len(first) + 4) + place + b"\0"
    address = 0x500000 - len(first) - 8  # the range itself is at 0x500000
    source = FrameSource(first + record(body), address, text=0x400000, table=0x600000)
    assert ranges(decode(source)) == [(START, START + 32, True)]


def test_a_function_at_the_very_start_of_the_text_is_there() -> None:
    first = common(data=b"\x23")
    source = FrameSource(first + record(struct.pack("<IIIB", len(first) + 4, 0, 32, 0)), 0, text=START)
    assert ranges(decode(source)) == [(START, START + 32, True)]


def test_a_function_that_the_linker_removed_is_left_out() -> None:
    first = common(augmentation=b"", data=b"")
    functions = b"".join(
        record(struct.pack("<IQQ", len(first) + 4 + 24 * i, *place)) for i, place in enumerate([(0, 16), (START, 0)])
    )
    assert ranges(decode(FrameSource(first + functions, 0))) == []


def test_augmentation_data_must_end_inside_the_record() -> None:
    first = common()
    at = len(first) + 4
    place = struct.pack("<IiI", at, START - at - 4, 16)
    assert ranges(decode(FrameSource(first + record(place + b"\x03\0\0\0"), 0))) == [(START, START + 16, True)]
    assert ranges(decode(FrameSource(first + record(place + b"\x04\0\0\0"), 0))) == [(START, START + 16, False)]
    assert ranges(decode(FrameSource(first + record(place + b"\x80" * 12), 0))) == []


@pytest.mark.parametrize("encoding", [0x9B, 0x01, 0x4B, 0x50, 0xFF, 0x23])
def test_an_encoding_that_cannot_be_followed_leaves_its_functions_out(encoding: int) -> None:
    frame = EhFrame(0).common(data=bytes([encoding])).function(START, 16).common().function(START + 64, 16)
    assert ranges(decode(FrameSource(frame.data, 0))) == [(START + 64, START + 80, True)]


@pytest.mark.parametrize(
    "options",
    [
        {"augmentation": b"eh"}, {"augmentation": b"zRX"}, {"version": 2}, {"code_factor": 0}, {"register": 17},
        {"augmentation": b"zPR", "data": b"\x50\0\0\0\0\x1b"}, {"program": b"\x0b"},
    ],
)  # fmt: skip
def test_a_common_entry_that_is_not_understood_leaves_its_functions_out(options: dict[str, object]) -> None:
    frame = EhFrame(0).common(**options).function(START, 16).common().function(START + 64, 16)
    assert ranges(decode(FrameSource(frame.data, 0))) == [(START + 64, START + 80, True)]


@pytest.mark.parametrize(
    ("augmentation", "data"),
    [(b"zPLR", b"\x9b\x01\x02\x03\x04\x1b\x1b"), (b"zRS", b"\x1b"), (b"zPR", b"\x00\1\2\3\4\5\6\7\x08\x1b")],
)
def test_augmentations_of_languages_and_signal_frames(augmentation: bytes, data: bytes) -> None:
    frame = EhFrame(0).common(augmentation=augmentation, data=data).function(START, 16, b"\x41\x0e\x10")
    frames = decode(FrameSource(frame.data, 0))
    assert rows_of(frames) == [(0, ENTRY), (1, ENTRY._replace(offset=16))]
    assert frames.rows.states[-1][1] == (b"S" in augmentation)


@pytest.mark.parametrize("version", [1, 3, 4])
@pytest.mark.parametrize("long", [False, True])
def test_debug_frame_in_32_and_64_bit_form(version: int, long: bool) -> None:
    form = "<Q" if long else "<I"
    mark = b"\xff" * struct.calcsize(form)
    first = common(augmentation=b"", version=version, mark=mark, long=long)
    place = struct.pack("<QQ", START, 48)
    function = record(struct.pack(form, 0) + place + b"\x41\x0e\x10", long)
    removed = record(struct.pack(form, 0) + struct.pack("<QQ", 0, 48), long)
    other = record(struct.pack(form, 0) + struct.pack("<QQ", 2**64 - 1, 48), long)  # what lld writes for those
    frames = decode(FrameSource(first + removed + function + other, 0, debug=True))
    assert ranges(frames) == [(START, START + 48, True)]
    assert rows_of(frames) == [(0, ENTRY), (1, ENTRY._replace(offset=16))]


def test_a_long_record_in_eh_frame_keeps_a_short_pointer() -> None:
    first = common(long=True)
    at = len(first) + 12
    function = record(struct.pack("<IiIB", at, START - at - 4, 16, 0) + b"\x41\x0e\x10", long=True)
    assert ranges(decode(FrameSource(first + function, 0))) == [(START, START + 16, True)]


def test_a_function_may_come_before_its_common_entry() -> None:
    function = record(struct.pack("<IQQ", 24, START, 16))
    assert len(function) == 24
    mark = b"\xff\xff\xff\xff"
    source = FrameSource(function + common(augmentation=b"", mark=mark), 0, debug=True)
    assert ranges(decode(source)) == [(START, START + 16, True)]


def test_a_zero_length_ends_memory_but_not_a_section() -> None:
    frame = EhFrame(0).common().function(START, 16)
    frame.data += b"\0\0\0\0"
    frame.function(START + 64, 16)
    assert len(decode(FrameSource(frame.data, 0)).starts) == 2
    assert len(decode(FrameSource(frame.data, 0, ends_at_zero=True)).starts) == 1


def test_a_record_longer_than_the_section_keeps_those_before_it() -> None:
    frame = EhFrame(0).common().function(START, 16).function(START + 16, 16)
    for size in range(len(frame.data) - 20, len(frame.data)):
        assert ranges(decode(FrameSource(frame.data[:size], 0))) == [(START, START + 16, True)]


def test_equal_programs_are_run_once() -> None:
    frame = EhFrame(0).common()
    for i in range(100):
        frame.function(START + 64 * i, 64, b"\x41\x0e\x10" if i % 2 else b"\x42\x0e\x10")
    frames = decode(FrameSource(frame.data, 0))
    assert len(frames.starts) == 100
    assert len(set(frames.programs.tolist())) == 2
    assert len(frames.rows.first_rows) - 1 == 4  # unreadable, the CIE's, two


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_any_length_come_back(size: int, offset: int) -> None:
    assert run(b"\x41\x0c\x06" + uleb(size))[-1] == (1, ENTRY._replace(register=6, offset=size))
    assert run(b"\x41\x11\x06" + sleb(offset))[-1] == (1, ENTRY._replace(fp=-8 * offset))


@settings(max_examples=300)
@given(st.binary(max_size=400), st.booleans())
def test_random_bytes_never_raise(data: bytes, debug: bool) -> None:
    frames = decode(FrameSource(data, 0x400000, debug, text=1, table=2))
    assert len(frames.starts) == len(frames.ends) == len(frames.programs)
    assert (frames.ends > frames.starts).all()


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_random_programs_give_ordered_rows_or_none(program: bytes) -> None:
    rows = run(program)
    distances = [distance for distance, _ in rows]
    assert distances[0] == 0
    assert distances == sorted(set(distances))
