"""Breakpoints in copies of probed code are told by the instructions around them, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.probing.copied_code import Excerpt, breakpoints_in_copies, excerpts

START = bytes.fromhex("4154 55 53 4889fb")  # push %r12; push %rbp; push %rbx; mov %rdi,%rbx
AT_START = Excerpt(START, 0, frozenset())
WITHIN = Excerpt(START, 3, frozenset({0}))


@pytest.fixture
def libc() -> Iterator[OpenBinary]:
    binaries = Binaries()
    path = next(p for p in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6") if binaries.open([p], p) is not None)
    found = binaries.open([path], path)
    assert found is not None
    yield found
    binaries.close()


def broken(code: bytes, *places: int) -> bytes:
    return bytes(0xCC if at in places else byte for at, byte in enumerate(code))


def test_a_breakpoint_in_a_copy_is_found_with_what_belongs_there() -> None:
    data = b"\x90" * 7 + broken(START, 0) + b"\xff\x25"
    assert breakpoints_in_copies(data, [AT_START]) == {7: 0x41}


def test_all_breakpoints_of_a_copy_are_found() -> None:
    assert breakpoints_in_copies(broken(START, 0, 3), [AT_START, WITHIN]) == {3: 0x53}
    both = [Excerpt(START, 0, frozenset({3})), WITHIN]
    assert breakpoints_in_copies(broken(START, 0, 3), both) == {0: 0x41, 3: 0x53}


@pytest.mark.parametrize(
    "data", [b"", b"\xcc", b"\xcc" * 64, START, broken(START, 3), broken(START, 0)[:-1], broken(START, 0, 4)]
)
def test_nothing_else_is_taken_for_one(data: bytes) -> None:
    assert breakpoints_in_copies(data, [AT_START]) == {}


def test_what_depends_on_its_place_tells_nothing(libc: OpenBinary) -> None:
    places = [offset for name in ("malloc", "calloc", "free", "realloc", "fork") if (offset := libc.file_offset(name))]
    found = excerpts(libc, places)
    assert found
    for excerpt in found:
        assert len(excerpt.code) > 4
        assert breakpoints_in_copies(broken(excerpt.code, excerpt.offset), found) == {
            excerpt.offset: excerpt.code[excerpt.offset]
        }
