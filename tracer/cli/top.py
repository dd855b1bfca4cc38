"""Watch what is outstanding while a command or a process runs.

A live view in the terminal: outstanding bytes and objects over time, what grows, the stacks and types that most is
left of. Keys: `?` shows all; up and down select an entry, Enter shows its whole stack, `s` sorts by another column,
`t` shows the counted types, `e` the errors, `m` sets a mark (a checkpoint: the column "since mark" counts what is
newer), `p` pauses, `l` looks into the memory: the target is stopped for as long as reading it takes, and each entry
says what is lost and, below its stack, who holds it. `h` shows what holds memory as a tree, from variables down, with
what each alone retains; after a second look also what that grew by since the first, and who retains what grew. `q`
ends the trace and leaves the report. The target runs on. A narrow terminal shows fewer columns.

A launched command gets no terminal: its standard input is /dev/null and its output goes to a file, unless they were
redirected.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import shlex
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

from tracer.analysis.top import top_sample
from tracer.api import JudgeOptions, Trace
from tracer.capture.launch import Streams
from tracer.cli import trace
from tracer.cli.choices import judge_options
from tracer.cli.option_values import interval
from tracer.cli.standard_streams import complain
from tracer.cli.target_words import check_target
from tracer.cli.terminal import Terminal
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot
from tracer.model.top import TopSample
from tracer.pipeline.analyst import Analyst
from tracer.pipeline.judgement import judge
from tracer.pipeline.naming import symbols_so_far
from tracer.report.top_screen import DETAILS, ENTRIES, ERRORS, HELD, HELP, TYPES, TopState, render
from tracer.symbols.holder_names import with_holder_names

NAME = "top"
TAKES_TARGET = True
USAGE = "refleak top [OPTION ...] CMD [ARGUMENT ...]\n       refleak top [OPTION ...] -p PID"
MOST_USED = ("pid", "command", "refs_only", "heap_only", "presets", "interval", "output")
_UNUSUAL = late_pattern(r"[^\w.+-]", re.ASCII)
_MOST_SAMPLES = 1000
_PAGE = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    trace.add_options(parser)
    parser.add_argument(
        "--interval", type=interval, default=1.0, metavar="TIME", help="look again every TIME (1: every second)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the view until the target ends or the user quits; then report, and return the target's exit status."""
    check_target(arguments, "watch", "refleak top")
    every, arguments.interval, arguments.quiet = arguments.interval, None, True
    terminal = Terminal()
    output = None
    try:
        if arguments.command:
            arguments.streams, output = _streams(arguments.command[0])
        view = TopView(terminal, arguments, every)
        status = trace.run_watched(arguments, view)
        return 0 if view.has_quit and status == trace.STOPPED_EARLY else status
    finally:
        terminal.close()
        if output is not None:
            print(f"refleak: the target's output is in {output}", file=sys.stderr)


def _streams(command: str) -> tuple[Streams, str | None]:
    """Keep of stdin, stdout and stderr what is no terminal; return the file that the output goes to, if any."""
    is_terminal = [os.isatty(fd) for fd in range(3)]
    source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if is_terminal[0] else 0
    if not (is_terminal[1] or is_terminal[2]):
        return Streams(source, 1, 2), None
    sink, name = tempfile.mkstemp(prefix=f"refleak-{_UNUSUAL.sub('_', PurePath(command).name[:40])}-", suffix=".out")
    return Streams(source, sink if is_terminal[1] else 1, sink if is_terminal[2] else 2), name


@dataclass(frozen=True)
class _Result:
    """The symbols stay packed in the tracer, which has no use for them."""

    symbols: bytes
    sample: TopSample


class TopView:
    """Samples through an Analyst, and draws when there is something new."""

    def __init__(self, terminal: Terminal, arguments: argparse.Namespace, every: float) -> None:
        what = shlex.join(arguments.command) if arguments.command else f"-p {','.join(arguments.pid)}"
        self.has_quit = False
        self._terminal, self._every = terminal, every
        self._judging = replace(judge_options(arguments), baseline=None)
        self._state = TopState(what)
        self._analyst = Analyst(complain)
        self._waits = False
        self._scans = False
        """The next look is one into the memory too."""
        self._next = 0.0
        self._drawn_size = (0, 0)

    def tick(self, running: Trace) -> None:
        """Handle keys, take in what the copy has found, send the next one, draw. Call it often."""
        if self._drawn_size == (0, 0):
            self._terminal.take()
        keys = self._terminal.keys()
        for key in keys:
            self._handle(key, running)
        fresh = self._collect()
        self._send(running)
        size = self._terminal.size()
        if keys or fresh or size != self._drawn_size:
            self._drawn_size = size
            self._terminal.show(render(self._state, *size))

    def _collect(self) -> bool:
        if not self._waits or self._analyst.busy:
            return False
        self._waits = False
        was_looking, self._state.looking = self._state.looking, self._scans
        result = self._analyst.result()
        if result is None or self._state.paused:
            return was_looking
        older = self._state.samples[1 - _MOST_SAMPLES :]
        if older:  # of those only the sums are drawn
            older[-1] = replace(older[-1], rows=(), types=(), errors=(), look=None)
        self._state.samples = [*older, result.sample]
        return True

    def _send(self, running: Trace) -> None:
        now = time.monotonic()
        if self._waits or now < self._next:
            return
        self._next = now + self._every
        self._waits = True
        running.look(self._analyst, partial(_sample, self._judging), scans=self._scans)
        self._scans = False

    def _handle(self, key: str, running: Trace) -> None:
        state = self._state
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -_PAGE, "page down": _PAGE}
        if key in moves:
            state.move(moves[key])
        elif key == "q":
            self.has_quit = True
            running.stop()
        elif key == "m":
            running.ask_for_checkpoint()
        elif key == "s":
            state.sort_by_next()
        elif key == "l":
            self._scans, self._next, state.looking = True, 0.0, True
        elif key == "p":
            state.paused = not state.paused
        elif key == "t":
            state.view = ENTRIES if state.view == TYPES else TYPES
        elif key == "e":
            state.view, state.scroll = ENTRIES if state.view == ERRORS else ERRORS, 0
        elif key == "h":
            state.view, state.scroll = ENTRIES if state.view == HELD else HELD, 0
        elif key == "?":
            state.view, state.scroll = ENTRIES if state.view == HELP else HELP, 0
        elif key in ("enter", "escape"):
            state.view, state.scroll = ENTRIES if state.view != ENTRIES or key == "escape" else DETAILS, 0
            if state.view == DETAILS and state.rows():
                state.selected = state.rows()[state.index()].id

    def finish(self) -> None:
        """Give the terminal back before the report is written."""
        self.close()

    def close(self) -> None:
        self._terminal.give_back()
        self._analyst.stop(at_once=True)


def _sample(judging: JudgeOptions, snapshot: Snapshot, before: Any) -> _Result:
    known: Symbols = {} if before is None else pickle.loads(before.symbols)
    snapshot = with_holder_names(snapshot, judging.symbols)
    symbols = symbols_so_far(snapshot, judging, known)
    sample = top_sample(judge(snapshot, symbols, judging), None if before is None else before.sample)
    return _Result(pickle.dumps(symbols, pickle.HIGHEST_PROTOCOL), sample)
