"""Capture options of one trace, and its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from tracer.kernel.maps import Constants, Limits
from tracer.late_dataclasses import dataclass
from tracer.model.preload_names import PreloadLibrary
from tracer.model.selection import KEEPS_ALL, Selection


@dataclass(frozen=True)
class Progress:
    """What the live status line shows."""

    elapsed_ns: int
    events: int
    lost: int


@dataclass(frozen=True)
class CaptureOptions:
    cache: Path
    limits: Limits = field(default_factory=Limits)
    follow: bool = True
    duration_s: float | None = None
    selection: Selection = KEEPS_ALL
    interpreters: bool = True
    """Walk the frames of interpreters too."""
    reachability: bool = False
    """Hold processes at their end, and look at what still points where."""
    hindrance: str | None = None
    """Why that cannot be told, as a clause."""
    preload: PreloadLibrary | None = None
    """What a launched program, and what it starts, are to call the heap through."""
    constants: Constants = field(default_factory=Constants)
    on_compile: Callable[[], None] = lambda: None
    """Called before the programs are compiled, which takes seconds; they are kept in the cache."""
    may_fork: Callable[[], bool] = lambda: True
    """Asked whether the target may start processes, where it costs much to be ready for that."""
    on_give_way: Callable[[], None] = lambda: None
    """Called before it is waited for runs that have ended."""
