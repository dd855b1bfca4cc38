"""Blocks that were freed with a counted object in them, whose memory was used again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, Refleak
from traced_report import functions

import tracer
from tracer.model.statistics import NEVER_PUT
from tracer.recording.reader import read_recording

HERE = Path(__file__).parent
QUIET = tracer.TraceOptions(user="root")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("freed") / "freed_holders"
    command = ["gcc", "-O1", "-g", "-fno-builtin", f"-I{CHECKOUT / 'examples'}", "-o", str(path)]
    subprocess.run([*command, str(HERE / "freed_holders.c")], check=True, timeout=100)
    return path


@pytest.mark.parametrize("options", [(), ("--preload",), ("--follow-forks",)])
@pytest.mark.parametrize(("size", "offset", "count"), [
    (8, 0, 90), (40, 32, 90), (64, 24, 90), (70, 56, 90), (512, 504, 90), (3000, 2400, 15),
])  # fmt: skip
def test_what_was_freed_without_a_put_is_named(
    refleak: Refleak, program: Path, size: int, offset: int, count: int, options: tuple[str, ...]
) -> None:
    run = refleak("--reachability", "auto", *options, target=(program, str(size), str(offset), str(count)))
    run.check_whole()
    (leak,) = [leak for leak in run.leaks if leak["kind"] == "reference"]
    assert (leak["count"], leak["instances"][0]["references"]) == (count // 3, 1)
    (holder,) = leak["holders"]
    assert (holder["kind"], holder["offset"], holder["count"]) == ("freed-block", offset, count // 3)
    assert functions(holder["stack"])[:2] == ["list_new", "main"]
    assert functions(holder["freed_at"])[:2] == ["list_delete", "main"]
    assert functions(leak["unpaired"][0]["stack"])[:2] == ["thing_get", "list_new"]


def test_only_the_first_large_ones_are_looked_at(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", target=(program, "3000", "2400", "300"))
    run.check_whole()
    (leak,) = [leak for leak in run.leaks if leak["kind"] == "reference"]
    (holder,) = leak["holders"]
    assert leak["count"] == 100 and 3 <= holder["count"] < 100


def test_of_a_birth_that_holds_some_often_a_part_is_told_of(program: Path, tmp_path: Path) -> None:
    tracer.trace([str(program), "40", "32", "12000"], QUIET, recording=tmp_path / "run.refleak")
    freed = read_recording(tmp_path / "run.refleak").snapshot.freed_holders
    assert 1_000 < freed["count"].sum() < 4_000
    lost = freed[(freed["serial"] != 0) & (freed["put"] == NEVER_PUT)]
    assert 300 < lost["count"].sum() < 2_000
