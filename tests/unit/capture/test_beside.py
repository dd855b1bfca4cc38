"""Work in a thread while the body of a `with` runs: it is done behind it, and its errors come out there."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from tracer.capture.beside import beside

PATIENCE_SECONDS = 60


def test_both_run_at_once() -> None:
    by_body, by_work = threading.Event(), threading.Event()

    def work() -> None:
        assert by_body.wait(PATIENCE_SECONDS)
        by_work.set()

    with beside(work):
        by_body.set()
        assert by_work.wait(PATIENCE_SECONDS)


def test_it_is_done_when_the_body_is_left() -> None:
    go_on, done = threading.Event(), []

    def work() -> None:
        assert go_on.wait(PATIENCE_SECONDS)
        done.append(threading.current_thread() is not threading.main_thread())

    with beside(work):
        go_on.set()
    assert done == [True]


def test_its_error_is_raised_behind_the_body() -> None:
    reached = []

    def fail() -> None:
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"), beside(fail):
        reached.append(1)
    assert reached == [1]


def test_an_error_of_the_body_waits_for_the_work() -> None:
    go_on, done = threading.Event(), []

    def work() -> None:
        assert go_on.wait(PATIENCE_SECONDS)
        done.append(1)

    with pytest.raises(KeyError), beside(work):
        go_on.set()
        raise KeyError
    assert done == [1]


def test_signals_are_for_the_main_thread() -> None:
    masks = []
    with beside(lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))):
        pass
    assert signal.SIGINT in masks[0] and signal.SIGTERM in masks[0]


def test_how_often_threads_take_turns_is_as_before() -> None:
    before = sys.getswitchinterval()
    with beside(lambda: None):
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before
