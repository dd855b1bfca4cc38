"""Warnings where the file on disk is not the one that ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_program import INLINED, binary, build

from tracer.model.snapshot import Binary
from tracer.symbols import mismatched

ONLY_DEBUG = "; only a debug file with its build id can name its functions"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return build(tmp_path, INLINED)


def test_the_file_that_ran_gives_no_warning(program: Path) -> None:
    assert mismatched([binary(program), binary(program, 2, deleted=True)]) == []


def test_a_replaced_file(program: Path) -> None:
    ran = binary(program)
    build(program.parent, INLINED.replace("n + 1", "n + 3"))
    now = binary(program)
    warning = f"{program}: not the file that ran: build id {now.build_id} on disk, {ran.build_id} traced"
    assert mismatched([ran, now]) == [warning + ONLY_DEBUG]
    assert mismatched([binary(program, build_id=ran.build_id, open_path="/proc/self/fd/9")]) == [warning]


def test_a_file_that_is_gone(program: Path) -> None:
    ran = binary(program)
    program.unlink()
    assert mismatched([ran, ran]) == [f"{program}: the file that ran is gone{ONLY_DEBUG}"]


def test_a_deleted_file_without_build_id(tmp_path: Path) -> None:
    program = build(tmp_path, INLINED, "-Wl,--build-id=none")
    assert mismatched([binary(program)]) == []
    assert mismatched([binary(program, deleted=True)]) == [
        f"{program}: the file that ran was deleted, and another may have its path{ONLY_DEBUG}"
    ]


def test_a_text_file_in_its_place(program: Path) -> None:
    ran = binary(program)
    program.write_text("#!/bin/sh\n")
    assert mismatched([ran]) == [f"{program}: the file that ran is gone{ONLY_DEBUG}"]


def test_what_is_no_file_is_left_out() -> None:
    assert mismatched([Binary(1, "[vdso]"), Binary(2, "")]) == []
