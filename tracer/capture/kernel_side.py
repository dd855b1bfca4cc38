"""Kernel side of one trace: its maps and programs, the rings that it writes and the page that both sides share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from tracer.capture.capture_options import CaptureOptions
from tracer.capture.fitted_limits import fitted_note
from tracer.capture.losses import describe, read_losses
from tracer.kernel import bpf
from tracer.kernel.first_looks import FirstLooks
from tracer.kernel.heartbeat import Heartbeat
from tracer.kernel.known_offsets import known_offsets
from tracer.kernel.maps import Maps
from tracer.kernel.programs import has_uprobe_multi, load_programs
from tracer.kernel.rings import Ring
from tracer.model import records
from tracer.model.records import ProcessState
from tracer.model.selection import Selection
from tracer.model.snapshot import Loss


class KernelSide:
    """What it has open is closed by `opened`, which a failure to make it leaves to the caller too."""

    def __init__(self, options: CaptureOptions, opened: ExitStack, *, by_events: bool = False) -> None:
        """`by_events`: probes are perf events, where the kernel has links too."""
        self._opened, self._limits = opened, options.limits
        self.maps = Maps.create(options.limits, options.constants)
        opened.callback(self.maps.close)
        self.programs = load_programs(
            self.maps, known_offsets(options.cache), options.cache, multi=has_uprobe_multi() and not by_events,
            interpreters=options.interpreters, on_compile=options.on_compile,
        )
        opened.callback(self.programs.close)
        self.rings: dict[str, Ring] = {}
        self.events = self._ring("EVENTS")
        self.stacks = self._ring("STACK_RING")
        self.interpreter_frames = self._ring("INTERPRETER_RING")
        self.dumps = self._ring("DUMP_RING")
        self.control = self._ring("CONTROL")
        self.shared = self.maps.view("SHARED", records.SHARED, 1)
        self.first_looks = FirstLooks(self.shared, options.limits.look_seconds)
        self._heartbeat = Heartbeat(self.shared)

    def _ring(self, name: str) -> Ring:
        ring = self.rings[name.lower()] = Ring(self.maps.fds[name], self.maps.entries[name])
        self._opened.callback(ring.close)
        return ring

    def enter(self, pid: int, state: ProcessState) -> None:
        """Let the programs count what a process does."""
        process = np.zeros(1, records.PROCESS)
        process["space"], process["state"], process["started_ns"] = pid, int(state), time.monotonic_ns()
        bpf.update_element(self.maps.fds["PROCESSES"], pid.to_bytes(4, "little"), process.tobytes())

    def select(self, selection: Selection) -> None:
        """Say which blocks are kept."""
        self.shared["min_size"] = selection.min_size
        self.shared["max_size"] = selection.max_size
        self.shared["sample_bytes"] = selection.sample_bytes
        # What was not kept when it was made again looks freed; what is older than the trace, as if it were nothing.
        self.shared["freed_sets"] = self._limits.freed_sets if selection.keeps_all else 0

    def beat(self) -> None:
        """Begin to say that somebody reads; until then, and when it stops, nobody is held."""
        self._opened.callback(self._heartbeat.stop)
        self._heartbeat.start()

    def lost(self) -> int:
        """Return how much the programs could not keep so far."""
        return sum(read_losses(self.maps.fds["LOSSES"]).values())

    @property
    def losses(self) -> Iterator[Loss]:
        """Yield those that the programs counted."""
        yield from describe(read_losses(self.maps.fds["LOSSES"]))

    @property
    def notes(self) -> tuple[str, ...]:
        why = self.programs.interpreters.refused if self.programs.interpreters else ""
        return (*((f"no frames of interpreters are shown: {why}",) if why else ()), *fitted_note(self._limits))
