"""What libc maps for itself in correct programs is called no leak."""

from __future__ import annotations

import shutil
from pathlib import Path

import compare_with_memcheck
import ordinary_programs
import pytest
from conftest import Refleak

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
PROGRAMS = (
    ("/bin/cat", "/dev/null"), ("/bin/ls", "-l", "/"), ("/bin/date",), ("/usr/bin/sort", "/etc/passwd"),
    ("/usr/bin/iconv", "-f", "UTF-8", "-t", "UTF-16", "/etc/passwd"), ("/usr/bin/env",), ("/usr/bin/id",),
)  # fmt: skip


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("command", PROGRAMS, ids=lambda command: command[0].rpartition("/")[2])
def test_no_mapping_of_an_ordinary_program_is_a_leak(
    refleak: Refleak, command: tuple[str, ...], locale: str
) -> None:
    run = refleak(target=command, environment=(("LC_ALL", locale),))
    run.check_whole()
    assert [leak for leak in run.leaks if leak["kind"] == "mapping"] == []


def test_cat_is_clean_in_every_locale(refleak: Refleak) -> None:
    run = refleak(target=("/bin/cat", "/dev/null"), environment=(("LC_ALL", "C.UTF-8"),))
    assert run.leaks == []


def test_arenas_of_threads_that_free_first_are_mallocs_own(refleak: Refleak) -> None:
    run = refleak(target=("free_first",))
    run.check_whole()
    assert run.leaks == []


@pytest.mark.parametrize("name", ["gio", "gsettings", "qemu"])
def test_programs_of_glib_have_no_possible_leak(name: str, tmp_path: Path) -> None:
    """All that their slices hold was possibly lost, 86 blocks of `gio info`; valgrind sees no slices, GLib asks it."""
    if not ordinary_programs.is_here(name):
        pytest.skip(f"needs {ordinary_programs.words_of(name)[0]}")
    ordinary_programs.prepare(tmp_path)
    assert ordinary_programs.lost_by_refleak(name, tmp_path, "C.UTF-8") == ((), True)


@needs_valgrind
@pytest.mark.parametrize("name", ["git", "sqlite3"])
def test_blocks_are_classed_as_by_memcheck(name: str) -> None:
    """A sample of what `python tests/kernel/compare_with_memcheck.py` runs: docs/reachability.md."""
    ours, theirs = compare_with_memcheck.compared(name)
    assert sum(blocks for blocks, _ in ours.sums().values()) > 10
    assert ours.sums() == theirs.sums()
    assert compare_with_memcheck.differences(ours, theirs) == []


@needs_valgrind
@pytest.mark.parametrize(("name", "locale"), [("grep", "C.UTF-8"), ("iconv", "C.UTF-8")])
def test_nothing_is_lost_that_memcheck_calls_reachable(name: str, locale: str) -> None:
    """A sample of what `python tests/kernel/ordinary_programs.py` runs: docs/ordinary-programs.md."""
    told = ordinary_programs.told(name, locale)
    assert told.complete
    assert list(told.false()) == []
    assert told.lost
    assert list(told.open()) == []
