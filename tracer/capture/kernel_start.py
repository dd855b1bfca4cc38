"""The start of a session: the kernel makes maps and looks at programs while the rest of refleak is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from tracer.capture.beside import beside
from tracer.capture.capture_options import CaptureOptions
from tracer.capture.kernel_side import KernelSide
from tracer.kernel import bpf
from tracer.kernel.closer import Closer
from tracer.kernel.programs import has_uprobe_multi
from tracer.kernel.uprobe_events import UprobeEvents

if TYPE_CHECKING:
    from tracer.capture.session import Session
    from tracer.probing.site_finder import SiteFinder

_MOST_CLOSING, _FAR_TOO_MANY = 8, 32
"""Runs that have ended and have events to close. Each keeps some 35 MB for that."""
_WAY_SECONDS, _LONG_WAY_SECONDS, _STEP_SECONDS = 10.0, 60.0, 0.25


class KernelStart:
    """What a session needs of the kernel, and what closes it: `make` comes after the constructor, and may be in a
    thread."""

    kernel: KernelSide

    def __init__(self, options: CaptureOptions) -> None:
        self.opened = ExitStack()
        """Closes, the last first, what was opened."""
        self._options = options
        self.uprobe_events = UprobeEvents()
        self._by_events = options.follow and give_way(options, self.uprobe_events)
        self.closer = Closer(self.uprobe_events)
        self.leaves_rest = False
        """What takes its time to close is left to the closer."""
        self.opened.callback(self._end_closer)
        try:
            self.uprobe_events.turns.claim()
        except BaseException:
            self.opened.close()
            raise

    def make(self) -> None:
        """Make maps and programs; raises what load_programs raises."""
        by_events = self._by_events and has_events(self._options, self.uprobe_events)
        with beside(self._open_first_event):
            self.kernel = KernelSide(self._options, self.opened, by_events=by_events)

    def _open_first_event(self) -> None:
        """Have the first perf event of all open: with it the kernel begins to look for events at each switch between
        threads, and waits some 20 ms until all processors know (account_event in kernel/events/core.c)."""
        with suppress(OSError):
            self.opened.callback(os.close, bpf.open_dummy_event(0))

    def _end_closer(self) -> None:
        """End it, unless it has something to close, or to remove names that the kernel still has in use."""
        if not self.leaves_rest and self.uprobe_events.close():
            self.closer.stop()


def give_way(options: CaptureOptions, events: UprobeEvents) -> bool:
    """Wait for runs that have ended where many have events to close, for some time: where one run follows the other,
    they come to that only now. Tell whether this run may have more of them: a program that is hardly going to have
    children has links, where it had to wait, which are closed all at once.
    """
    had, began = events.runs_that_close, time.monotonic()
    if had <= _MOST_CLOSING:
        return True
    if has_uprobe_multi() and not options.may_fork():
        return False
    options.on_give_way()
    deadline = began + (_WAY_SECONDS if had <= _FAR_TOO_MANY else _LONG_WAY_SECONDS)
    while events.runs_that_close > _MOST_CLOSING and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)
        events.look()
    return True


def has_events(options: CaptureOptions, events: UprobeEvents) -> bool:
    """Tell whether all probes are to be by events: where children are traced too, a link to one waits for the locks of
    who is held."""
    return options.follow and events.can_be_added


def open_session(options: CaptureOptions, site_finder: Callable[[], SiteFinder]) -> Session:
    """Return a session. `site_finder` is called while the kernel is busy with 0.2 s of work, on another processor, if
    there is one."""
    start = KernelStart(options)
    try:
        with beside(start.make):
            finder = site_finder()
            from tracer.capture.session import Session
        return Session(options, finder, start)
    except BaseException:
        start.opened.close()
        raise
