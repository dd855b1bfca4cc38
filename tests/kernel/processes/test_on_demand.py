"""The memory of processes that run on: what is lost when the trace ends, and that nobody is left standing."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from live_refleak import PATIENCE_SECONDS, live_refleak, wait_for
from scan_kill_trials import trial
from traced_report import Run, functions

SOURCE = Path(__file__).parents[1] / "reachability" / "lives_on.c"
KILLS, SCANS = 5, 13
STEP_SECONDS = 0.03
CHECKOUT = Path(__file__).parents[3]
EXPECTED = {
    ("reachable", "make_held"): 13, ("reachable", "make_by_older"): 1, ("reachable", "make_on_stack"): 1,
    ("lost", "make_lost"): 8,
}  # fmt: skip


def built(source: Path, folder: Path) -> Path:
    path = folder / source.stem
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-w", "-o", str(path), str(source)]
    subprocess.run(command, check=True, timeout=100)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SOURCE, tmp_path_factory.mktemp("on_demand"))


@pytest.fixture(scope="module")
def shuffles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SOURCE.with_name("shuffles.c"), tmp_path_factory.mktemp("shuffles"))


def answers(process: subprocess.Popen[bytes], expected: bytes) -> None:
    """Have it read a byte and answer: it does not stand still."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0], "it does not answer"
    assert process.stdout.readline() == expected


@contextmanager
def target(program: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(program), *map(str, arguments)]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            yield process
        finally:
            process.kill()


@contextmanager
def traced_by(tracer: str, pid: int) -> Iterator[int]:
    """Have all its threads traced by another program; give the number of that one."""
    if shutil.which(tracer) is None:
        pytest.skip(f"{tracer} is not installed")
    commands = {
        "strace": ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid)],
        "gdb": ["gdb", "-q", "-nx", "-batch", "-ex", f"attach {pid}", "-ex", "shell read line", "-ex", "detach"],
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.PIPE}
    with subprocess.Popen(commands[tracer], **quiet) as holder:  # type: ignore[call-overload]
        try:
            tasks = Path(f"/proc/{pid}/task")
            wait_for(lambda: all(is_stopped(int(task.name)) for task in tasks.iterdir()), tracer)
            yield holder.pid
        finally:
            if tracer == "gdb":
                holder.communicate(b"\n")
            holder.terminate()


def classes(run: Run) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for leak in run.leaks:
        maker = next((name for name in functions(leak["stack"]) if name and name.startswith("make_")), "")
        if maker:
            found[leak["reachability"], maker] += leak["count"]
    return found


def is_stopped(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def built_and_ended(process: subprocess.Popen[bytes], folder: Path) -> Run:
    """Trace a target while it builds what it has, end the trace, and see that the target goes on."""
    with live_refleak(folder / "r.json", "--reachability", "auto", "-p", process.pid) as refleak:
        refleak.wait_until_attached()
        answers(process, b"built\n")
        refleak.signal(signal.SIGINT)
        run = refleak.end()
    answers(process, b"alive\n")
    return run


def test_what_only_vector_registers_point_at(tmp_path: Path) -> None:
    """Of a pointer that memmove or a swap moves a vector register has the only copy for an instruction or two; such
    blocks were called lost where a thread stopped just then. Here some stay there."""
    with target(built(SOURCE.with_name("vectors.c"), tmp_path)) as process:
        run = built_and_ended(process, tmp_path)
    assert classes(run) == {("reachable", "make_held"): 5, ("reachable", "make_moved"): 13, ("lost", "make_lost"): 7}


@pytest.mark.parametrize("threads", [0, 3])
def test_what_is_lost_in_a_process_that_runs_on(program: Path, tmp_path: Path, threads: int) -> None:
    """What is older than the trace holds; what was freed since does not, unless a block is on the move."""
    with target(program, threads) as process:
        run = built_and_ended(process, tmp_path)
    found = classes(run)
    (scan,) = run.report["scans"]
    assert (scan["looked_into"], scan["held_ns"] > 0) == (True, True), scan
    assert {leak["state"] for leak in run.leaks} == {"outstanding"}
    if threads and found["reachable", "make_lost"] == 1:  # one was in realloc: what is in no block may be in one
        found += Counter({("lost", "make_lost"): found.pop(("reachable", "make_lost"))})
    assert found == EXPECTED


def test_a_target_whose_tracer_is_killed_while_it_is_read_goes_on(program: Path, tmp_path: Path) -> None:
    """Some moments of what scan_kill_trials.py tries at random."""
    done = [trial(program, tmp_path / "r.json", turn * STEP_SECONDS) for turn in range(KILLS)]
    assert [one.still for one in done] == [[]] * KILLS
    assert any(one.stood for one in done)


def test_one_that_sleeps_is_read_as_if_it_was_stopped(program: Path, tmp_path: Path) -> None:
    with target(program) as process:
        with live_refleak(tmp_path / "r.json", "--reachability", "auto", "--no-stop", "-p", process.pid) as refleak:
            refleak.wait_until_attached()
            answers(process, b"built\n")
            refleak.signal(signal.SIGINT)
            run = refleak.end()
        answers(process, b"alive\n")
    (scan,) = run.report["scans"]
    assert (scan["looked_into"], scan["held_ns"], scan["why_running"]) == (True, 0, "--no-stop was given"), scan
    found = classes(run)
    if scan["passes"] > 1:  # a thread ran
        assert found["reachable", "make_lost"] <= 1
        found += Counter({("lost", "make_lost"): found.pop(("reachable", "make_lost"), 0)})
    assert found == EXPECTED


@pytest.mark.parametrize("tracer", [None, "strace", "gdb"])
def test_pointers_that_move_all_the_time(shuffles: Path, tmp_path: Path, tracer: str | None) -> None:
    """Threads exchange what they have in registers with words of eight pages, and keep one block in a register."""
    with target(shuffles) as process, ExitStack() as traced:
        options = ["--no-stop"] if tracer is None else []
        with live_refleak(tmp_path / "r.json", "--reachability", "auto", *options, "-p", process.pid) as refleak:
            refleak.wait_until_attached()
            answers(process, b"built\n")
            if tracer is not None:
                holder = traced.enter_context(traced_by(tracer, process.pid))
            refleak.signal(signal.SIGINT)
            run = refleak.end()
        traced.close()
        answers(process, b"alive\n")
    (scan,) = run.report["scans"]
    why = f"{tracer} (pid {holder}) traces it" if tracer is not None else "--no-stop was given"
    assert (scan["looked_into"], scan["held_ns"], scan["why_running"]) == (True, 0, why), scan
    found = classes(run)
    lost = {maker for (reach, maker), count in found.items() if reach != "reachable"}
    assert lost == {"make_lost"}
    assert found["lost", "make_lost"] >= 6  # a dead word of a stack may point at one
    assert (found["reachable", "make_held"], found["reachable", "make_in_register"]) == (11, 3)


def test_what_another_traces_is_looked_into_at_its_end(shuffles: Path, tmp_path: Path) -> None:
    """Of its threads one is held; the others run on, and cannot be stopped."""
    with target(shuffles) as process, live_refleak(
        tmp_path / "r.json", "--reachability", "auto", "-p", process.pid
    ) as refleak:
        refleak.wait_until_attached()
        answers(process, b"built\n")
        with traced_by("strace", process.pid):
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE_SECONDS) == 0
            run = refleak.end()
    (scan,) = run.report["scans"]
    assert scan["looked_into"], scan
    assert scan["why_running"].startswith("strace")
    found = classes(run)
    assert {maker for (reach, maker), count in found.items() if reach == "lost"} == {"make_lost"}


def test_nothing_is_lost_that_is_held(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Blocks go from thread to thread, arrays grow by realloc. scan_trials.py does it for longer."""
    path = tmp_path_factory.mktemp("held") / "holds_everything"
    source = SOURCE.with_name("holds_everything.c")
    subprocess.run(["gcc", "-O2", "-w", "-pthread", "-o", str(path), str(source)], check=True, timeout=100)
    trials = Path(__file__).parents[1] / "scan_trials.py"
    command = [sys.executable, str(trials), str(path), str(SCANS)]
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    said = subprocess.run(
        command, check=True, timeout=600, capture_output=True, text=True, env=variables
    ).stdout
    assert f"{SCANS} scans of 1 runs: {{'REACHABLE':" in said
    assert said.count("'") == 2, said
