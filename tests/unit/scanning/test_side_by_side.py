"""Work that is done side by side comes to what it comes to one by one, whatever becomes of the copies."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tracer.scanning import side_by_side as module
from tracer.scanning.side_by_side import side_by_side

THINGS = list(range(101))


@pytest.fixture(name="processors", params=[1, 2, 3, 64], autouse=True)
def _processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count = int(request.param)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(count)))
    return count


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children()}, len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert ({child.pid for child in psutil.Process().children()}, len(list(Path("/proc/self/fd").iterdir()))) == before


@pytest.mark.parametrize("least", [1, 16, 60, 1000])
def test_results_are_in_order(least: int) -> None:
    assert side_by_side(lambda n: (n, n * n), THINGS, least) == [(n, n * n) for n in THINGS]
    assert side_by_side(str, [], least) == []


def test_parts_are_done_by_as_many_processes_as_there_are_processors(processors: int) -> None:
    pids = side_by_side(lambda _: os.getpid(), THINGS, 16)
    assert len(set(pids)) == min(processors, 101 // 16) and pids[0] == os.getpid()


def test_who_is_done_takes_more(processors: int, tmp_path: Path) -> None:
    """One of them does nothing but the first of its things until the others are done."""
    here = os.getpid()

    def work(n: int) -> int:
        end = time.monotonic() + 60
        while os.getpid() == here and processors > 1 and len(list(tmp_path.iterdir())) < len(THINGS) - 1:
            assert time.monotonic() < end
            time.sleep(0.001)
        (tmp_path / str(n)).touch()
        return os.getpid()

    pids = side_by_side(work, THINGS, 16)
    assert pids.count(here) == (1 if processors > 1 else len(THINGS))


@pytest.mark.parametrize("count", [999, 1003, 12_345])
def test_many_are_done_once_each(count: int) -> None:
    assert side_by_side(lambda n: -n, range(count), 16) == [-n for n in range(count)]


def test_what_goes_wrong_in_a_copy_is_done_here(tmp_path: Path) -> None:
    here = os.getpid()

    def work(n: int) -> int:
        if os.getpid() != here:
            (tmp_path / str(n)).touch()
            raise RuntimeError
        return -n

    assert side_by_side(work, THINGS, 16) == [-n for n in THINGS]


def test_what_goes_wrong_here_is_said() -> None:
    def work(n: int) -> int:
        raise OSError(n)

    with pytest.raises(OSError, match=r"^0$"):
        side_by_side(work, THINGS, 16)


def test_a_copy_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST_SECONDS", 0.05)
    here = os.getpid()

    def work(n: int) -> int:
        if os.getpid() != here:
            time.sleep(100)
        return n

    began = time.monotonic()
    assert side_by_side(work, THINGS, 16) == THINGS
    assert time.monotonic() - began < 50


def test_no_warning_of_a_fork_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = os.fork

    def warn() -> int:
        warnings.warn("This process is multi-threaded", DeprecationWarning, stacklevel=2)
        return fork()

    monkeypatch.setattr(os, "fork", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert side_by_side(str, THINGS, 16) == [str(n) for n in THINGS]


def test_where_nobody_may_fork_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    assert set(side_by_side(lambda _: os.getpid(), THINGS, 16)) == {os.getpid()}
