"""Lines of scripts, against what CPython itself says of its code, and Lua's tables written by hand."""

from __future__ import annotations

import asyncio
import dis
import importlib
import sys
from collections.abc import Iterator
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.interpreters.lua import lines
from tracer.interpreters.python import location_table

MODULES = ("argparse", "asyncio.base_events", "dataclasses", "enum", "inspect", "typing", "json.decoder", "tarfile")


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the format is that of CPython 3.11 and later")
@pytest.mark.parametrize("name", MODULES)
def test_every_instruction_of_the_standard_library(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        whole = compile(file.read(), module.__file__, "exec")
    count = 0
    for code in code_objects(whole):
        expected = [position[0] for position in code.co_positions()]
        found = [location_table.line_at(code.co_linetable, code.co_firstlineno, i) for i in range(len(expected))]
        assert found == expected, code.co_qualname
        count += len(expected)
    assert count > 500


def test_the_line_of_a_call_that_spans_lines() -> None:
    source = "f(\n  1,\n  g(\n  ),\n)\n"
    code = compile(source, "s", "exec")
    calls = [i.offset // 2 for i in dis.get_instructions(code) if i.opname == "CALL"]
    assert [location_table.line_at(code.co_linetable, 1, at) for at in calls] == [3, 1]


def test_beyond_the_end_there_is_no_line() -> None:
    code = asyncio.sleep.__code__
    units = len(code.co_code) // 2
    assert location_table.line_at(code.co_linetable, code.co_firstlineno, units) is None
    assert location_table.line_at(b"", 1, 0) is None


def test_a_table_that_is_cut_has_the_same_lines_or_none() -> None:
    code = asyncio.sleep.__code__
    whole = [position[0] for position in code.co_positions()]
    for end in range(len(code.co_linetable)):
        for at, line in enumerate(whole):
            assert location_table.line_at(code.co_linetable[:end], code.co_firstlineno, at) in (line, None)


@given(st.binary(max_size=60), st.integers(0, 1 << 31), st.integers(0, 1 << 32))
def test_any_bytes_are_a_location_table(table: bytes, first: int, at: int) -> None:
    line = location_table.line_at(table, first, at)
    assert line is None or isinstance(line, int)


def test_differences_add_up_from_the_line_of_the_definition() -> None:
    assert [lines.line_at(b"\x00\x01\xff\x02", b"", 10, at) for at in range(5)] == [10, 11, 10, 12, None]


def test_the_last_absolute_line_at_or_before_counts() -> None:
    absolute = (2).to_bytes(4, "little") + (500).to_bytes(4, "little")
    assert [lines.line_at(b"\x00\x01\x80\x02", absolute, 10, at) for at in range(4)] == [10, 11, 500, 502]


def test_an_absolute_line_that_was_not_copied_is_no_line() -> None:
    assert lines.line_at(b"\x00\x01\x80\x02", b"", 10, 3) is None


@given(st.binary(max_size=60), st.binary(max_size=40), st.integers(0, 1 << 31), st.integers(0, 1 << 32))
def test_any_bytes_are_lua_tables(differences: bytes, absolute: bytes, defined: int, at: int) -> None:
    line = lines.line_at(differences, absolute, defined, at)
    assert line is None or isinstance(line, int)
