"""Frames of scripts between those of the C stack, and the records that they come from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.interpreters import frames
from tracer.interpreters.code import frames_of, read_code
from tracer.interpreters.frames import InterpreterFrames
from tracer.interpreters.merging import Run, merged
from tracer.model import records
from tracer.model.frames import Frame
from tracer.model.records import FRAME_BINARY_SHIFT, SCRIPT_BINARY, InterpreterRecord, StackStatus
from tracer.model.snapshot import Stack

NATIVE, PLACES = (1, 2, 3, 4, 5, 6), (0, 16, 64, 256, 320, 400)
FIRST = SCRIPT_BINARY << FRAME_BINARY_SHIFT


def python(place: int, *frames: int) -> Run:
    return Run(frames, place, replaces_loop=True)


def lua(place: int, *frames: int) -> Run:
    return Run(frames, place, replaces_loop=False)


def test_a_run_of_python_takes_the_place_of_its_loop() -> None:
    assert merged(NATIVE, PLACES, [python(72, 10, 11), python(256, 12)]) == ((1, 2, 10, 11, 12, 5, 6), 0)


def test_a_run_of_lua_stands_before_the_function_that_entered_lua() -> None:
    """Its place is the stack pointer of the caller: that of frame 5 at 320, so frame 4 is the function."""
    assert merged(NATIVE, PLACES, [lua(320, 10, 11)]) == ((1, 2, 3, 10, 11, 4, 5, 6), 0)


def test_both_in_one_stack() -> None:
    runs = [python(20, 10), lua(256, 11), python(330, 12, 13)]
    assert merged(NATIVE, PLACES, runs) == ((1, 10, 11, 3, 4, 12, 13, 6), 0)


def test_a_place_that_is_not_found_leaves_the_native_frames() -> None:
    assert merged(NATIVE, PLACES, [lua(321, 10), lua(0, 11)]) == (NATIVE, 2)


def test_a_run_beyond_the_end_of_a_cut_stack_is_no_miss() -> None:
    assert merged(NATIVE, PLACES, [python(900, 10)]) == (NATIVE, 0)


def test_a_run_without_frames_leaves_the_loop() -> None:
    assert merged(NATIVE, PLACES, [python(72)]) == (NATIVE, 0)


def test_behind_a_signal_on_a_stack_of_its_own_nothing_is_merged() -> None:
    assert merged(NATIVE, (0, 16, 64, 8, 320, 400), [python(72, 10), python(330, 11)]) == (NATIVE, 2)


@given(st.lists(st.integers(0, 500), max_size=8), st.lists(st.tuples(st.integers(0, 600), st.booleans()), max_size=6))
def test_no_native_frame_is_lost_but_those_of_loops(places: list[int], found: list[tuple[int, bool]]) -> None:
    native = tuple(range(1, len(places) + 1))
    runs = [Run((100 + i,), place, replaces_loop) for i, (place, replaces_loop) in enumerate(found)]
    frames, missed = merged(native, sorted(places), runs)
    kept = [frame for frame in frames if frame < 100]
    assert kept == sorted(kept) and missed >= 0
    assert len(frames) - len(kept) + missed <= len(runs)
    assert len(native) - len(kept) <= sum(run.replaces_loop for run in runs)


def code(number: int, name: str = "f", file: str = "/s.py", kind: int = InterpreterRecord.PYTHON, **more: int) -> bytes:
    row = np.zeros(1, records.INTERPRETER_CODE)
    row["id"], row["kind"], row["first_line"] = number, kind, 7
    for field, text in (("name", name), ("file", file)):
        width = 1 if text.isascii() else 2
        data = text.encode("ascii" if width == 1 else "utf-16-le")
        room = row[field].shape[1]
        row[field][0, : len(data)] = list(data[:room])
        row[f"{field}_length"], row[f"{field}_state"] = len(text), width << 2 | 32 | (width == 1) << 6
    if kind != InterpreterRecord.PYTHON:
        row["file_length"] = len(file) + 1
    table = bytes([0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3, 6])  # line 7 for two instructions, line 10 for one
    row["table_bytes"] = len(table)
    for field, value in more.items():
        row[field] = value
    return row.tobytes()[: -records.INTERPRETER_CODE["table"].itemsize] + table


def stack(number: int, native: int, frames: list[tuple[int, int, int]], cut: int = 0) -> bytes:
    row = np.zeros(1, records.INTERPRETER_STACK)
    row["id"], row["native"], row["depth"], row["is_cut"] = number, native, len(frames), cut
    row["native_depth"] = len(PLACES)
    row["places"][0, : len(PLACES)] = PLACES
    row["frames"][0, : len(frames)] = frames
    return row.tobytes()[: records.INTERPRETER_STACK.itemsize - (128 - len(frames)) * 16]


def test_a_code_is_named_and_its_lines_are_read() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77, "C.größe"), stack(9, 5, [(77, 1, 0), (77, 2, 73)])])
    book.settle(stacks)
    assert stacks[9] == Stack((1, 2, FIRST, FIRST | 1, 4, 5, 6))
    assert book.frames == [
        Frame("C.größe", "s.py", file="/s.py", line=7, kind="guest", language="Python"),
        Frame("C.größe", "s.py", file="/s.py", line=10, kind="guest", language="Python"),
    ]
    assert book.notes == ()


def test_what_comes_is_only_kept_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(frames, "read_code", lambda blob: read.append(blob) or read_code(blob))
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), code(78), *(stack(number, 5, [(77, 1, 73)]) for number in (11, 12, 13))])
    assert (stacks, read, book.waiting) == ({5: Stack(NATIVE)}, [], 3)
    book.settle(stacks, most=2)
    assert (stacks.keys(), book.waiting) == ({5, 11, 12}, 1)
    book.settle(stacks)
    assert (stacks.keys(), book.waiting, len(read)) == ({5, 11, 12, 13}, 0, 1)


def test_lines_are_looked_up_in_parts() -> None:
    """Somebody may be held meanwhile."""
    turns: list[int] = []
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([*map(code, range(1, 1001)), stack(9, 5, [(1, 1, 73)])])
    book.add([stack(1000 + number, 5, [(number, 1, 73)]) for number in range(1, 1001)])
    book.settle(stacks)
    book.look_up(lambda: turns.append(len(turns)))
    assert len(turns) > 8 and len(book.frames) == 1000


def test_a_code_that_comes_behind_its_stack_has_its_name_too() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([stack(9, 5, [(77, 1, 73)])])
    book.settle(stacks)
    book.add([code(77)])
    assert [frame.function for frame in book.frames] == ["f"]


def test_frames_that_were_asked_for_keep_their_numbers() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), code(78, "g"), stack(9, 5, [(77, 1, 73)])])
    book.settle(stacks)
    first = list(book.frames)
    book.add([stack(10, 5, [(78, 1, 0), (77, 1, 0), (77, 2, 73)])])
    book.settle(stacks)
    assert stacks[10].frames == (1, 2, FIRST | 1, FIRST, FIRST | 2, 4, 5, 6)
    assert [(f.function, f.line) for f in book.frames] == [("f", 7), ("g", 7), ("f", 10)]
    assert list(book.frames)[:1] == first


def test_a_run_with_a_frame_that_could_not_be_told_is_left_out() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), stack(9, 5, [(77, 0, 0), (0, 0, 0), (77, 0, 73), (77, 2, 257)])])
    book.settle(stacks)
    assert stacks[9].frames == (1, 2, 3, FIRST, 5, 6)


@pytest.mark.parametrize("most", [1, 2, 1000])
def test_runs_that_are_met_again_are_the_same(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(frames, "_MOST_RUNS", most)
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    outer = [(77, 2, 0), (0, 0, 257)]
    runs = ([(77, 1, 73)], [(77, 1, 0), (77, 2, 73)], [(0, 0, 0), (77, 1, 73)])
    book.add([code(77), *(stack(9 + at, 5, [*run, *outer]) for at, run in enumerate((*runs, *runs)))])
    book.settle(stacks)
    for number in (9, 12):
        assert stacks[number].frames == (1, 2, FIRST, FIRST | 1, 5, 6)
        assert stacks[number + 1].frames == (1, 2, FIRST, FIRST | 1, FIRST | 1, 5, 6)
        assert stacks[number + 2].frames == (1, 2, 3, FIRST | 1, 5, 6)


def test_a_mark_behind_the_frames_ends_a_run() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), stack(9, 5, [(77, 0, 0), (0, 0, 73), (77, 2, 0), (0, 0, 257)])])
    book.settle(stacks)
    assert stacks[9].frames == (1, 2, FIRST, FIRST | 1, 5, 6)


def test_frames_that_were_cut_make_a_cut_stack() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), stack(9, 5, [(77, 0, 73), (77, 0, 0)], cut=1)])
    book.settle(stacks)
    assert stacks[9] == Stack((1, 2, FIRST, 4, 5, 6), StackStatus.TRUNCATED)
    assert book.notes == (
        "1 stacks lack frames of an interpreter that are deeper than refleak follows, or could not be read",
    )


def test_what_cpython_runs_on_its_own_behalf_is_not_shown() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([code(77), code(78, "__init__", "__init__", first_line=0), code(79, "__init__", "__init__")])
    book.add([stack(9, 5, [(77, 0, 0), (78, 2, 0), (79, 0, 73)])])
    book.settle(stacks)
    assert stacks[9].frames == (1, 2, FIRST, FIRST | 1, 4, 5, 6)
    assert [(frame.function, frame.file) for frame in book.frames] == [("f", "/s.py"), ("__init__", "__init__")]


def test_code_that_was_lost_has_no_name() -> None:
    book, stacks = InterpreterFrames(), {5: Stack(NATIVE)}
    book.add([stack(9, 5, [(77, 0, 73)])])
    book.settle(stacks)
    assert book.frames == [Frame(None, kind="guest", why_unknown="its code was not kept")]


def test_a_stack_whose_native_part_was_lost_is_lost_too() -> None:
    book, stacks = InterpreterFrames(), dict[int, Stack]()
    book.add([code(77), stack(9, 5, [(77, 0, 73)])])
    book.settle(stacks)
    assert stacks == {}


def test_texts_longer_than_what_was_copied_say_so() -> None:
    found = read_code(code(1, "x" * 300))
    assert found is not None and found.name == "x" * 256 + "..."


def test_what_lua_calls_its_chunks() -> None:
    names = {
        "@dir/s.lua": ("dir/s.lua", "function <s.lua:7>"),
        "=stdin": ("stdin", "function <stdin:7>"),
        "return 1": ('[string "return 1"]', 'function <[string "return 1"]:7>'),
        "a\nb": ('[string "a..."]', 'function <[string "a..."]:7>'),
    }
    for source, (file, name) in names.items():
        found = read_code(code(1, file=source, kind=InterpreterRecord.LUA_LINES))
        assert found is not None and (found.file, found.name) == (file, name)
    main = read_code(code(1, file="@s.lua", kind=InterpreterRecord.LUA_LINES, first_line=0))
    assert main is not None and main.name == "main chunk"


def test_lua_lines_that_are_given() -> None:
    found = read_code(code(1, file="@s.lua", kind=InterpreterRecord.LUA_LINES))
    assert found is not None
    assert (frames_of(found, [12])[0].line, frames_of(found, [records.INTERPRETER_NO_LINE])[0].line) == (12, None)


@given(st.binary(max_size=3000), st.integers(0, 3))
def test_any_bytes_are_a_record(blob: bytes, kind: int) -> None:
    book = InterpreterFrames()
    book.add([blob[:8] + bytes([kind, 0, 0, 0]) + blob[12:] + bytes(2200)])
    book.settle({int.from_bytes(blob[16:24], "little"): Stack(NATIVE)})
    assert all(frame.kind == "guest" for frame in book.frames)


def test_places_of_a_stack_that_was_walked_further() -> None:
    book, stacks = InterpreterFrames(), {5: Stack((1, 2, 3))}
    book.add([code(77), stack(9, 5, [(77, 1, 73)])])
    book.settle(stacks, {5: (0, 60, 200)})
    assert stacks[9] == Stack((1, FIRST, 3))


def test_places_behind_the_end_of_a_stack_are_not_used() -> None:
    book, stacks = InterpreterFrames(), {5: Stack((1, 2), StackStatus.NO_TABLE)}
    book.add([code(77), stack(9, 5, [(77, 1, 73)])])
    book.settle(stacks)
    assert stacks[9].frames == (1, 2)
