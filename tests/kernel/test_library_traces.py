"""refleak as a library: what it finds is what the command finds, and nothing stays open. docs/api.md."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from bpf_residue import Residue
from conftest import LiveTarget
from documented_examples import examples, run_in

import tracer
from tracer.errors import CannotWrite, NoSuchTarget

QUIET = tracer.TraceOptions(user="root")
LOST_AND_KEPT = [("leak_and_leave", 30, 4530, "leaked", "lost"), ("leak_and_leave", 1, 151, "leaked", "reachable")]


def open_files() -> list[str]:
    found = []
    for place in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself
            found.append(str(place.readlink()))
    return sorted(found)


def blocks(report: tracer.Report) -> list[tuple[str | None, int, int | None, str, str | None]]:
    return [(k.callers[0].function, k.count, k.bytes, k.state, k.reachability) for k in report.leaks]


def test_two_traces_in_one_process_leave_nothing_open(targets: Path, tmp_path: Path) -> None:
    tracer.trace([str(targets / "clean"), "quiet"], QUIET)  # imports what a trace needs
    before, residue, priority = open_files(), Residue(), os.getpriority(os.PRIO_PROCESS, 0)
    for number in range(2):
        path = tmp_path / f"{number}.refleak"
        report = tracer.trace([str(targets / "short")], QUIET, recording=path)
        assert (report.exit_status, report.complete) == (0, True)
        assert blocks(report) == LOST_AND_KEPT
        assert open_files() == before
        assert tracer.read(path).text() == report.text()
    assert residue.left(os.getpid()) == []
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority


def test_what_fails_leaves_nothing_open(targets: Path, tmp_path: Path) -> None:
    tracer.trace([str(targets / "clean"), "quiet"], QUIET)
    before = open_files()
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(NoSuchTarget, match="there is no command"):
        tracer.trace(["/no/such/program"], QUIET, recording=tmp_path / "run.refleak")
    with pytest.raises(tracer.RefleakError):
        tracer.trace([str(script)], QUIET, recording=tmp_path / "run.refleak")
    assert not (tmp_path / "run.refleak").exists()
    with pytest.raises(CannotWrite):
        tracer.trace([str(targets / "short")], QUIET, recording=tmp_path / "no" / "folder.refleak")
    assert open_files() == before


def test_a_body_that_is_traced(targets: Path, live_target: LiveTarget) -> None:
    with live_target("attach") as target:
        assert target.stdin is not None and target.stdout is not None
        before = open_files()
        with tracer.attach(target.pid, QUIET) as running:
            target.stdin.write(b"x")
            assert target.stdout.readline() == b"done\n"
            running.checkpoint()
        assert open_files() == before
        told = blocks(running.report)  # the stack of what runs on may still have one of the pointers
        assert {(function, state) for function, _, _, state, _ in told} == {("leak_after_attach", "outstanding")}
        assert (sum(row[1] for row in told), sum(row[2] or 0 for row in told)) == (19, 3173)
        assert ("lost", True) in [(row[4], row[1] >= 18) for row in told]
        assert [checkpoint.number for checkpoint in running.report.checkpoints] == [1]
        assert target.poll() is None


def test_a_launched_target_that_is_waited_for(targets: Path) -> None:
    with tracer.launch([str(targets / "short")], QUIET) as running:
        assert running.wait(120)
    assert blocks(running.report) == LOST_AND_KEPT
    assert running.report.exit_status == 0


def test_an_error_in_the_body_ends_the_trace(live_target: LiveTarget) -> None:
    with live_target("attach") as target:
        before, residue = open_files(), Residue()
        with pytest.raises(ZeroDivisionError), tracer.attach(target.pid, QUIET) as running:
            _ = 1 / 0
        assert (open_files(), target.poll(), residue.left(os.getpid())) == (before, None, [])
    with pytest.raises(RuntimeError, match="once the `with` block has ended"):
        _ = running.report


@pytest.mark.parametrize(("program", "status"), [("clean", 0), ("short", 1)])
def test_the_example_of_a_test_runner_runs(targets: Path, tmp_path: Path, program: str, status: int) -> None:
    shutil.copy(targets / program, tmp_path / "parse")
    (tmp_path / "test_parser.py").write_text(examples()["A check in a test runner"])
    done = run_in(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_parser.py")
    assert done.returncode == status, done.stdout + done.stderr
    assert ("leak_and_leave" in done.stdout) == (program == "short")


def test_the_example_of_a_gate_runs(targets: Path, tmp_path: Path) -> None:
    gate = examples()["A gate of a pipeline"]
    shutil.copy(targets / "clean", tmp_path / "server")
    tracer.trace([str(tmp_path / "server"), "quiet"], QUIET).write("json", tmp_path / "main.json")
    assert run_in(tmp_path, "-c", gate).returncode == 0
    shutil.copy(targets / "short", tmp_path / "server")
    done = run_in(tmp_path, "-c", gate)
    assert (done.returncode, done.stderr) == (1, "1 entry leaked\n")
    assert (tmp_path / "leaks.sarif").exists()
    tracer.read(tmp_path / "leaks.json").write("json", tmp_path / "main.json")
    assert run_in(tmp_path, "-c", gate).returncode == 0
    (tmp_path / "server").unlink()
    done = run_in(tmp_path, "-c", gate)
    assert done.returncode == 1 and done.stderr.startswith("there is no command ./server\n")
