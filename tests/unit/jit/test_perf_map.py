"""perf maps: lines as they come, whole or in pieces, and whatever else somebody wrote into the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.jit.function_names import FunctionName, is_of_v8, read_name
from tracer.jit.perf_map import PerfMapLine, PerfMapReader, parse_line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"7f38437c6540 e4 JS:^leaky /x.js:2:15", PerfMapLine(0x7F38437C6540, 0xE4, "JS:^leaky /x.js:2:15")),
        (b"0x1000 0x10 name", PerfMapLine(0x1000, 0x10, "name")),
        (b"1000\t10  two words \r", PerfMapLine(0x1000, 0x10, "two words")),
        (b"1000 10 \xff\xfe", PerfMapLine(0x1000, 0x10, "��")),
        (b"7ffffffffff0 10 last", PerfMapLine(0x7FFFFFFFFFF0, 0x10, "last")),
        (b"7ffffffffff0 11 beyond", None),
        (b"1000 0 nothing", None),
        (b"1000 10000001 too large", None),
        (b"1000 10", None),
        (b"1000 10 ", None),
        (b"-1000 10 name", None),
        (b"1_000 10 name", None),
        (b"10000000000000000 10 name", None),
        (b"", None),
    ],
)
def test_lines(line: bytes, expected: PerfMapLine | None) -> None:
    assert parse_line(line) == expected


def test_what_is_no_line_is_counted() -> None:
    reader = PerfMapReader()
    assert [line.name for line in reader.feed(b"1000 10 a\nrubbish\n\n2000 10 b\n3000 1")] == ["a", "b"]
    assert [line.name for line in reader.feed(b"0 c\n")] == ["c"]
    assert reader.malformed == 1


def test_a_line_without_an_end_is_passed_over() -> None:
    reader = PerfMapReader()
    assert reader.feed(b"1000 10 " + b"x" * 70_000) == []
    assert reader.feed(b"y" * 70_000) == []
    assert reader.feed(b"1000 10 end of it\n2000 10 b\n") == [PerfMapLine(0x2000, 0x10, "b")]
    assert reader.malformed == 1


WRITTEN = st.lists(
    st.tuples(st.integers(1, 1 << 46), st.integers(1, 1 << 20), st.text("abc:/.<>~^*", min_size=1, max_size=20)),
    max_size=20,
)


@given(WRITTEN, st.integers(1, 50))
def test_pieces_give_what_the_whole_gives(written: list[tuple[int, int, str]], size: int) -> None:
    data = "".join(f"{start:x} {length:x} {name}\n" for start, length, name in written).encode()
    reader = PerfMapReader()
    found = [line for at in range(0, len(data), size) for line in reader.feed(data[at : at + size])]
    assert found == [PerfMapLine(*line) for line in written]
    assert reader.malformed == 0


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_any_bytes(pieces: list[bytes]) -> None:
    reader = PerfMapReader()
    found = [line for piece in pieces for line in reader.feed(piece)]
    lines = [line for line in b"".join(pieces).split(b"\n")[:-1] if line]
    assert len(found) + reader.malformed == len(lines)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JS:*leaky /x y.js:3:16", FunctionName("leaky", "/x y.js", "JavaScript")),
        ("JS:^leaky file:///a.mjs:3:16", FunctionName("leaky", "file:///a.mjs", "JavaScript")),
        ("JS:~ node:path:1208:10", FunctionName("(anonymous):1208:10", "node:path", "JavaScript")),
        ("py::C.f:/a/b.py", FunctionName("C.f", "/a/b.py", "Python")),
        ("py::_find:<frozen importlib._bootstrap>", FunctionName("_find", "<frozen importlib._bootstrap>", "Python")),
        ("Builtin:CEntry", FunctionName("Builtin:CEntry")),
        ("JS:leaky", FunctionName("JS:leaky")),
        ("", FunctionName("")),
    ],
)
def test_names(name: str, expected: FunctionName) -> None:
    assert read_name(name) == expected


def test_names_of_v8() -> None:
    assert [is_of_v8(name) for name in ("JS:^f x.js:1:1", "Builtin:CEntry", "py::f:x", "Interpreter")] == [
        True, True, False, False,
    ]  # fmt: skip
