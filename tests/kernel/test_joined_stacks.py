"""Walks that are remembered, or end in the last one: the stacks are those of walks that are all made in full."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from random_stacks import program

from tracer.capture.assembly import take_snapshot
from tracer.capture.capture_options import CaptureOptions
from tracer.capture.kernel_start import open_session
from tracer.capture.launch import launch
from tracer.capture.statistics import read_statistics
from tracer.files.cache_folder import cache_directory
from tracer.kernel.maps import Constants
from tracer.model.records import StackStatus
from tracer.model.run_statistics import RunStatistics
from tracer.model.snapshot import Snapshot
from tracer.pipeline.site_finder import cost_model
from tracer.probing.site_finder import SiteFinder

SEEDS = (1, 2)
TARGETS = (("cpp",), ("deep",), ("longjmp", "malloc"), ("longjmp", "qsort"), ("realigned",), ("cut_frames", "ways"))
FLAGS = {"without frame pointers": ("-O2", "-fomit-frame-pointer"), "with": ("-O1", "-fno-omit-frame-pointer")}
Stacks = Counter[tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Run:
    stacks: Stacks
    """How often each allocated."""
    statistics: RunStatistics

    @property
    def joined(self) -> int:
        return sum(walks.joined for walks in self.statistics.walks)


def traced(command: Sequence[str], *, remembers: bool) -> Run:
    finder = SiteFinder(cost_model(cache_directory()), references=False, heap=True, mappings=False)
    held = launch(command, None)
    constants = Constants(counts=True, remembers=remembers)
    session = open_session(CaptureOptions(cache_directory(), follow=False, constants=constants), lambda: finder)
    try:
        session.launch(held, command[0])
        session.run()
        snapshot = take_snapshot(session)
        assert session.exit_status == 0
        return Run(stacks_of(snapshot), read_statistics(session))
    finally:
        session.close()


def stacks_of(snapshot: Snapshot) -> Stacks:
    names = {binary.id: binary.path for binary in snapshot.binaries}
    found: Stacks = Counter()
    for row in snapshot.totals:
        stack = snapshot.stacks[int(row["stack"])]
        frames = tuple((names.get(frame >> 48, ""), frame & (1 << 48) - 1) for frame in stack.frames)
        found[(StackStatus(stack.status).name, 0), *frames] += int(row["made"])
    return found


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_stacks_of_random_programs(tmp_path: Path, seed: int, flags: str) -> None:
    source, built = tmp_path / "random.c", tmp_path / "random"
    source.write_text(program(seed))
    subprocess.run(["gcc", "-w", *FLAGS[flags], "-o", built, source], check=True)
    full, joined = (traced([str(built)], remembers=remembers) for remembers in (False, True))
    assert len(full.stacks) > 100
    assert joined.stacks == full.stacks
    assert full.joined == 0 and joined.joined > 100
    assert joined.statistics.frames_walked < full.statistics.frames_walked / 2


@pytest.mark.parametrize("target", TARGETS)
def test_stacks_of_targets(targets: Path, target: tuple[str, ...]) -> None:
    command = [str(targets / target[0]), *target[1:]]
    assert traced(command, remembers=True).stacks == traced(command, remembers=False).stacks
