"""The same verdict and entries on each kernel: `make test-kernels` lays them side by side.

Each test asserts what is known beforehand, and records all that it found for that table.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import CHECKOUT, REFLEAK, LiveTarget
from patience import PATIENCE, TIMEOUT_SECONDS
from traced_perf import built

import tracer

sys.path.insert(0, str(Path(__file__).parent / "processes"))
from live_refleak import LiveRefleak, live_refleak

PEOPLE = ("AUTHOR", "COMMITTER")
VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C", "PERF_CONFIG": "/dev/null", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONMALLOC": "malloc",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "maintenance.auto", "GIT_CONFIG_VALUE_0": "false",
    **{f"GIT_{who}_{what}": "a" for who in PEOPLE for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "2020-02-02T02:02:02Z" for who in PEOPLE},
}  # fmt: skip
"""Of the targets: what they allocate is not to differ by user or time. How much of an arena of Python's own can be
used, and so who makes the next one, depends on where it lies."""
OWN = ("REFLEAK_CACHE", "NPY_DISABLE_CPU_FEATURES")
"""What refleak needs itself. Shells and interpreters make a block for each variable: all others are left out."""
GIT = "git init -q . && seq 7 >f && touch -d @0 f && git add f && git commit -qm a && git log --oneline | grep -c a"
"""The file is old: one that is as new as its index is read again, so what git allocates would depend on the second."""
PIPELINE = "seq 1000 | sed s/7/x/ | grep -c x"
SQL = "create table t(a, b); insert into t values (7, 'x'), (11, 'y'); select sum(a), max(b) from t group by b;"
PYTHON = "import json; print(json.dumps({str(n): [n] * n for n in range(23)})[-5:])"

HOLD = ("--hold", "20") if PATIENCE > 1 else ()
"""A processor that is many times slower takes as much longer to have a child's probes in place."""
TURNS = 4
"""On a busy machine a hold can expire, which is said: only where all runs are incomplete something is wrong."""

Recorded = Callable[[Path], tracer.Report]
Traced = Callable[..., tracer.Report]


@pytest.fixture
def recorded(record_property: Callable[[str, object], None]) -> Recorded:
    """Give a function that reads a recording, and puts its verdict and entries into the JUnit file."""

    def read(path: Path) -> tracer.Report:
        report = tracer.read(path)
        assert report.complete, report.text()
        leaks = [(leak.id, leak.kind, leak.state, leak.type, leak.count, leak.bytes) for leak in report.leaks]
        errors = [(error.id, "error", error.kind, error.type, error.count, None) for error in report.errors]
        record_property("verdict", report.verdict.removeprefix("refleak: "))
        record_property("entries", json.dumps(sorted((*leaks, *errors), key=str)))
        return report

    return read


def variables(work: Path) -> dict[str, str]:
    """Return the same variables on each machine."""
    return {name: os.environ.get(name, "") for name in OWN} | VARIABLES | {"PWD": str(work)}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder whose name is as long on each kernel: programs allocate the path of where they are."""
    with TemporaryDirectory(prefix="every-kernel-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def traced(recorded: Recorded, folder: Path) -> Traced:
    """Give a function that traces a command in a folder of its own and returns the recorded report."""

    def trace(*command: object, options: Sequence[str] = (), status: int = 0) -> tracer.Report:
        for turn in range(TURNS):
            work, recording = folder / f"{turn}", folder / f"{turn}.refleak"
            work.mkdir()
            words = [REFLEAK, "--user", "root", *HOLD, *options, "-o", recording, "--exec", *command]
            done = subprocess.run(
                list(map(str, words)), cwd=work, env=variables(work),
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
            assert done.returncode == status, done.stderr
            if tracer.read(recording).complete:
                break
        return recorded(recording)

    return trace


def test_demo(traced: Traced) -> None:
    report = traced(CHECKOUT / "examples" / "demo" / "leaky")
    assert report.verdict == "refleak: LEAK: 3 objects of 1 type, lost 305 bytes in 11 blocks"


def test_perf_with_stubs(traced: Traced) -> None:
    report = traced(built("perf"), "evlist", "-i", "/no/such/file", options=["--refs-only"], status=255)
    assert report.verdict == "refleak: LEAK: 1 object of 1 type"


def test_git(traced: Traced) -> None:
    traced("/bin/sh", "-c", GIT)


def test_sqlite3(traced: Traced) -> None:
    traced("/usr/bin/sqlite3", ":memory:", SQL)


def test_python3(traced: Traced) -> None:
    traced("/usr/bin/python3", "-sS", "-c", PYTHON)


def test_a_forking_pipeline(traced: Traced) -> None:
    traced("/bin/sh", "-c", PIPELINE)


@pytest.mark.needs("holds")
def test_libraries_a_b_and_a_at_one_address(traced: Traced, targets: Path) -> None:
    report = traced(targets / "dlopen_sequence", options=["--reachability", "off"])
    counts = [(leak.callers[0].function, leak.count) for leak in report.leaks if leak.count in (13, 17)]
    assert sorted(counts) == [("leak_in_a", 13), ("leak_in_a", 13), ("leak_in_b", 17)]


def test_attach(live_target: LiveTarget, recorded: Recorded, tmp_path: Path) -> None:
    with live_target("attach") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        _let_it_leak(target, refleak)
        _close(target)
        assert refleak.end().status == 0
    _check_attached(recorded(tmp_path / "report"))


def test_detach(live_target: LiveTarget, recorded: Recorded, tmp_path: Path) -> None:
    with live_target("attach") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        _let_it_leak(target, refleak)
        refleak.signal(signal.SIGINT)
        assert refleak.end().status == 0
        assert target.poll() is None
        _close(target)
    _check_attached(recorded(tmp_path / "report"))


def _let_it_leak(target: subprocess.Popen[bytes], refleak: LiveRefleak) -> None:
    assert target.stdin is not None and target.stdout is not None
    refleak.wait_until_attached()
    target.stdin.write(b"x")
    assert target.stdout.readline() == b"done\n"


def _close(target: subprocess.Popen[bytes]) -> None:
    assert target.stdin is not None
    target.stdin.close()
    assert target.wait() == 0


def _check_attached(report: tracer.Report) -> None:
    [leak] = report.leaks
    assert "leak_after_attach" in [frame.function for frame in leak.stack[:2]]
    assert (leak.count, leak.bytes) == (19, 3173)
