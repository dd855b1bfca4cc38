"""What the target gets from whoever starts it is the same under refleak: all of it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import LiveTarget
from live_refleak import REFLEAK, environment, let_end, live_refleak
from traced_report import callers


def _plain() -> None:
    pass


def _unusual() -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGWINCH])
    os.umask(0o137)
    os.nice(3)
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (997, 1009))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, {0})


def outcome(
    command: list[str], prepare: Callable[[], None], folder: Path, variables: dict[str, str]
) -> tuple[int, list[str], str]:
    opened = os.open("/dev/null", os.O_RDONLY)
    try:
        result = subprocess.run(
            command, input="said on stdin\n", capture_output=True, text=True, cwd=folder, env=variables,
            preexec_fn=prepare, restore_signals=False, pass_fds=(opened,), timeout=120,
        )  # fmt: skip
    finally:
        os.close(opened)
    # The shell that starts refleak puts the environment into another order.
    lines = sorted(line for line in result.stdout.splitlines() if "pipe:[" not in line)
    return result.returncode, lines, result.stderr


@pytest.mark.parametrize("prepare", [_plain, _unusual])
def test_the_same_under_refleak(targets: Path, tmp_path: Path, prepare: Callable[[], None]) -> None:
    command = [str(targets / "surroundings"), "first", "", "third one", "--exec", "-p"]
    variables = environment() | {"PYTHONPATH": "/nowhere", "PYTHONMALLOC": "debug", "MARK": "a b=c", "LC_ALL": "C"}
    variables["PWD"] = str(tmp_path)  # a shell, as which refleak starts, corrects any other
    traced = [str(REFLEAK), "-o", str(tmp_path / "report.json"), "--exec", *command]
    alone = outcome(command, prepare, tmp_path, variables)
    below = outcome(traced, prepare, tmp_path, variables)
    assert alone[0] == 23
    assert "said on stdin" in alone[1]
    assert (below[0], below[2]) == (alone[0], alone[2])
    # Alone it leads the group that was made for it; below, refleak does, and it is in the same.
    leads = prepare is _unusual
    expected = sorted("group parent's" if leads and line == "group own" else line for line in alone[1])
    assert below[1] == expected


def test_the_user_who_called_sudo(targets: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    variables = {"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"}
    assert _users(tmp_path, targets, variables) == ("65534", "65534")


def test_a_user_that_was_asked_for(targets: Path, tmp_path: Path) -> None:
    assert _users(tmp_path, targets, {}, "--user", "nobody") == ("65534", "65534")


def test_root_when_asked_for_under_sudo(targets: Path, tmp_path: Path) -> None:
    assert _users(tmp_path, targets, {"SUDO_UID": "65534", "SUDO_GID": "65534"}, "--user", "root") == ("0", "0")


def _users(folder: Path, targets: Path, variables: dict[str, str], *options: str) -> tuple[str, str]:
    for place in (targets, *targets.parents[:2]):
        place.chmod(place.stat().st_mode | 0o055)
    with live_refleak(folder / "report", *options, "--exec", "id", variables=variables) as refleak:
        refleak.end().check_whole()
    with live_refleak(
        folder / "report", *options, "--exec", targets / "surroundings", variables=variables
    ) as refleak:
        run = refleak.end()
    fields = {line.split()[0]: line.split()[1] for line in run.stdout.splitlines() if line[:4] in ("Uid:", "Gid:")}
    return fields["Uid:"], fields["Gid:"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_passed_on(targets: Path, tmp_path: Path, number: signal.Signals) -> None:
    with live_refleak(tmp_path / "report", "--exec", targets / "on_signal") as refleak:
        assert refleak.line() == b"ready\n"
        refleak.signal(number)
        run = refleak.end()
    run.check_whole(40 + number)
    assert run.stdout == f"{number.name}\n"
    assert run.alive("allocation") == [("malloc", "main", 3, 111)]


def test_ctrl_c_reaches_the_target_and_is_reported(targets: Path, tmp_path: Path) -> None:
    with live_refleak(tmp_path / "report", "--exec", targets / "on_signal") as refleak:
        assert refleak.line() == b"ready\n"
        os.killpg(refleak.pid, signal.SIGINT)
        run = refleak.end()
    run.check_whole(40 + signal.SIGINT)
    assert run.stdout == "SIGINT\n"


@pytest.mark.parametrize("replace", [False, True])
def test_a_program_whose_file_goes_away(targets: Path, tmp_path: Path, replace: bool) -> None:
    program = tmp_path / "vanishing"
    program.write_bytes((targets / "attach").read_bytes())
    program.chmod(0o755)
    with live_refleak(tmp_path / "report", "--exec", program) as refleak:
        assert refleak.line() == b"ready\n"
        program.unlink()
        if replace:
            program.write_bytes((targets / "clean").read_bytes())
        refleak.tell(b"x")
        assert refleak.line() == b"done\n"
        run = refleak.end()
    run.check_whole()
    assert run.alive("allocation") == [
        ("malloc", "before_attach", 12, 12 * 163), ("malloc", "leak_after_attach", 19, 3173),
    ]  # fmt: skip


def test_a_killed_program_whose_file_is_gone(targets: Path, tmp_path: Path) -> None:
    """Nothing is left to read the names from but what was opened while it lived."""
    program = tmp_path / "vanishing"
    program.write_bytes((targets / "attach").read_bytes())
    program.chmod(0o755)
    with live_refleak(tmp_path / "report", "--exec", program) as refleak:
        assert refleak.line() == b"ready\n"
        program.unlink()
        os.kill(refleak.child(), signal.SIGKILL)
        run = refleak.end()
    run.check_whole(128 + signal.SIGKILL)
    assert run.alive("allocation") == [("malloc", "before_attach", 17, 17 * 163)]
    [leak] = run.leaks
    assert [frame["function"] for frame in callers(leak)][1] == "main"
    assert {frame["file"] for frame in callers(leak)[:2]} != {None}


def test_an_attached_program_whose_file_goes_away(
    live_target: LiveTarget, targets: Path, tmp_path: Path
) -> None:
    program = targets / "vanishing"
    program.write_bytes((targets / "attach").read_bytes())
    program.chmod(0o755)
    with live_target("vanishing") as target:
        program.unlink()
        with live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
            refleak.wait_until_attached()
            let_end(target)
            run = refleak.end()
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)]
