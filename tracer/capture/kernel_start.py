"""The start of a session: the kernel makes maps and looks at programs while the rest of refleak is imported."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from tracer.capture.beside import beside
from tracer.capture.capture_options import CaptureOptions
from tracer.capture.kernel_side import KernelSide
from tracer.kernel import bpf
from tracer.kernel.closer import Closer
from tracer.kernel.uprobe_events import UprobeEvents

if TYPE_CHECKING:
    from tracer.capture.session import Session
    from tracer.probing.site_finder import SiteFinder


class KernelStart:
    """What a session needs of the kernel, and what closes it: `make` comes after the constructor, and may be in a
    thread."""

    kernel: KernelSide

    def __init__(self, options: CaptureOptions) -> None:
        self.opened = ExitStack()
        """Closes, the last first, what was opened."""
        self._options = options
        self.uprobe_events = UprobeEvents()
        self.closer = Closer(self.uprobe_events)
        self.leaves_rest = False
        """What takes its time to close is left to the closer."""
        self.opened.callback(self._end_closer)
        try:
            self.uprobe_events.claim()
        except BaseException:
            self.opened.close()
            raise

    def make(self) -> None:
        """Make maps and programs; raises what load_programs raises."""
        by_events = has_events(self._options, self.uprobe_events)
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
