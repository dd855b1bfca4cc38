"""Programs run on the stack of the thread. Those of uprobes can be preempted: one per processor would be written over
by the next thread (seen on 7.2: an oops)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from program_code import code_of, shares_its_stack

from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType
from tracer.kernel.btf import kernel_offsets
from tracer.kernel.maps import Limits, Maps
from tracer.kernel.programs import Programs, has_uprobe_multi, load_programs

STORE, MOVE, EXIT = 0x7A, 0xB7, 0x95
FRAME_POINTER = 10


def instruction(code: int, target: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return bytes([code, target]) + offset.to_bytes(2, "little", signed=True) + value.to_bytes(4, "little")


def loaded_fds(programs: Programs) -> dict[str, int]:
    """Return all programs by name, those that are loaded later too."""
    found = {name: programs[name] for name in ("on_fork", "on_exec", "on_exit")}
    probes = programs.probes
    assert probes.interpreters is not None
    for fds in (probes.fds, probes.references.fds, probes.described.fds, probes.wrappers.fds, probes.interpreters.fds):
        found |= fds
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    maps = Maps.create(Limits())
    cache = tmp_path_factory.mktemp("cache")
    with closing(maps), closing(load_programs(maps, kernel_offsets(), cache, multi=has_uprobe_multi())) as programs:
        yield programs


def test_no_program_shares_its_stack_with_other_threads(programs: Programs) -> None:
    fds = loaded_fds(programs)
    assert {"freed", "on_hold", "on_call", "reference", "interpreters"} <= fds.keys()
    assert min(len(code_of(fd)) for fd in fds.values()) > 100
    assert [name for name, fd in fds.items() if shares_its_stack(fd)] == []


def test_a_shared_stack_would_be_seen() -> None:
    """This kernel gives a program with 64 bytes of stack such a one, or has none."""
    release = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
    code = instruction(STORE, FRAME_POINTER, -64) + instruction(MOVE) + instruction(EXIT)
    fd = bpf.load_program(ProgramType.KPROBE, "shares", code)[0]
    try:
        assert shares_its_stack(fd) == (release >= (6, 13))
    finally:
        os.close(fd)


def test_runs_that_the_kernel_passed_over_are_counted(programs: Programs) -> None:
    text = Path(f"/proc/self/fdinfo/{programs['on_exec']}").read_text()
    assert "recursion_misses:\t0" in text.splitlines()
    assert programs.passed_over == 0


def test_on_a_slow_machine_nothing_that_counts_is_loaded_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for is_slow in (False, True):
        monkeypatch.setattr("tracer.kernel.programs.SLOW_SECONDS", 0.0 if is_slow else 60.0)
        with (
            closing(Maps.create(Limits())) as maps,
            closing(load_programs(maps, kernel_offsets(), tmp_path, multi=has_uprobe_multi())) as programs,
        ):
            assert programs.probes.references.is_loaded == is_slow
            assert ("OBJECTS" in maps.fds) == is_slow
