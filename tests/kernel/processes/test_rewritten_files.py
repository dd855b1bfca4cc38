"""Files that are rewritten in place while they are traced: each version has its own probes, and runs as untraced."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import LiveTarget, Refleak
from live_refleak import live_refleak
from traced_report import Run

TARGETS = Path(__file__).parents[1] / "targets"


@dataclass(frozen=True)
class Versions:
    """Two versions of a program and of a library, which nobody changes, and the folder for one that is changed."""

    folder: Path

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    folder = tmp_path_factory.mktemp("versions")
    for number in (1, 2):
        for name in ("program", "library", "same_place"):
            options = ["-static"] if name == "program" else ["-fPIC", "-shared"]
            command = [
                "gcc", "-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", f"-DVERSION={number}",
                f"-I{TARGETS}", *options, "-o", str(folder / f"{name}{number}"), f"{TARGETS}/versions/{name}.c",
            ]  # fmt: skip
            subprocess.run(command, check=True, timeout=60)
    return Versions(folder)


def untraced(command: list[str]) -> tuple[int, str]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, result.stdout


def blocks(run: Run, version: int) -> list[tuple[int, int]]:
    """Return count and bytes of what each process that ran this version left."""
    return [(leak["count"], leak["bytes"]) for leak in run.below(f"leak_in_{version}", "allocation")]


def as_untraced(refleak: Refleak, command: list[str], *options: str) -> Run:
    """Trace a command that ends as it does untraced."""
    status, output = untraced(command)
    run = refleak(*options, target=command)
    assert (run.status, run.stdout) == (status, output), run.stderr
    return run


def check_second(run: Run) -> None:
    """The second version's blocks are all there, with its names; the first version's have no name of the second."""
    assert blocks(run, 2) == [(17, 1513)]
    assert run.report["totals"]["allocations"]["made"] >= 2 * (13 + 17)


SHELL = "cp $0 $2 && $2; cp $1 $2 && $2; echo $?"
IN_ONE_PROCESS = "cp $0 $2; exec $2 /bin/sh -c 'cp $0 $1; exec $1' $1 $2"


@pytest.mark.parametrize("script", [SHELL, IN_ONE_PROCESS])
def test_a_program_is_copied_over(refleak: Refleak, versions: Versions, tmp_path: Path, script: str) -> None:
    command = ["/bin/sh", "-c", script, versions["program1"], versions["program2"], str(tmp_path / "sx")]
    check_second(as_untraced(refleak, command))


def test_a_program_is_copied_over_between_two_runs(refleak: Refleak, versions: Versions, tmp_path: Path) -> None:
    """The kernel keeps the first one's instructions, where probes were, until all that was there is closed."""
    program = str(tmp_path / "sx")
    for turn, version in enumerate((1, 2, 1, 2)):
        shutil.copy(versions[f"program{version}"], program)
        run = as_untraced(refleak, [program], "--max-objects", str(100_000 + turn))
        assert run.report["complete"]
        assert blocks(run, version) == [(13, 1157) if version == 1 else (17, 1513)]


def test_a_program_that_is_spawned(refleak: Refleak, versions: Versions, targets: Path, tmp_path: Path) -> None:
    files = [versions["program1"], versions["program2"], str(tmp_path / "sx")]
    check_second(as_untraced(refleak, [str(targets / "rewrites"), "spawn", *files]))


@pytest.mark.parametrize("tool", ["strip $2", "objcopy --strip-debug $2", "objcopy --add-section .more=/etc/passwd $2"])
def test_a_tool_rewrites_the_program(refleak: Refleak, versions: Versions, tmp_path: Path, tool: str) -> None:
    script = f"cp $0 $2; ln $2 $2.other; $2; cp $1 $2; {tool}; $2; echo $?"
    command = ["/bin/sh", "-c", script, versions["program1"], versions["program2"], str(tmp_path / "sx")]
    status, output = untraced(command)
    (tmp_path / "sx.other").unlink()
    run = refleak(target=command)
    assert (run.status, run.stdout) == (status, output), run.stderr
    if "strip $2" not in tool:
        check_second(run)


def written_over(
    refleak: Refleak, versions: Versions, targets: Path, tmp_path: Path, library: str, how: str
) -> tuple[Run, int]:
    """Write a library's second version over the first; return also how many processes use both."""
    files = [versions[f"{library}1"], versions[f"{library}2"], str(tmp_path / "library.so")]
    return as_untraced(refleak, [str(targets / "rewrites"), how, *files]), 2 if how == "two" else 1


@pytest.mark.parametrize("how", ["dlopen", "two"])
def test_a_library_is_written_over(
    refleak: Refleak, versions: Versions, targets: Path, tmp_path: Path, how: str
) -> None:
    run, users = written_over(refleak, versions, targets, tmp_path, "library", how)
    assert run.types == {
        f"object of {number}": (8 * users, 0, puts * users, puts * users, (8 - puts) * users)
        for number, puts in ((1, 3), (2, 5))
    }


@pytest.mark.parametrize("how", ["dlopen", "two"])
def test_another_instruction_stands_at_the_same_place(
    refleak: Refleak, versions: Versions, targets: Path, tmp_path: Path, how: str
) -> None:
    """The kernel executes the one that it has copied, while anybody has a probe there: there must be none."""
    run, users = written_over(refleak, versions, targets, tmp_path, "same_place", how)
    assert run.types["object of 1"] == (8 * users, 0, 3 * users, 3 * users, 5 * users)
    assert run.types["object of 2"][:3] == (8 * users, 0, 0)
    assert not run.report["complete"]
    assert "__refcnt__put" in {missed["function"] for missed in run.report["probes"]["unresolved"]}
    assert {leak["state"] for leak in run.report["leaks"] if leak["type"] == "object of 2"} == {"outstanding"}


@pytest.mark.parametrize("how", ["spawn", "dlopen"])
def test_attached(versions: Versions, live_target: LiveTarget, tmp_path: Path, how: str) -> None:
    kind = "program" if how == "spawn" else "library"
    files = [versions[f"{kind}1"], versions[f"{kind}2"], str(tmp_path / "rewritten"), "ready"]
    said = {"spawn": b"version 1\nstatus 5376\nversion 2\nstatus 5632\n", "dlopen": b"version 31\nversion 52\n"}
    with (
        live_target("rewrites", how, *files) as target,
        live_refleak(tmp_path / "report", "--follow-forks", "-p", target.pid) as refleak,
    ):
        assert target.stdin is not None and target.stdout is not None
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        assert (target.stdout.read(), target.wait()) == (said[how], 0)
        run = refleak.end()
    if how == "spawn":
        check_second(run)
    else:
        made = {name: row[:3] for name, row in run.types.items()}
        assert made == {"object of 1": (8, 0, 3), "object of 2": (8, 0, 5)}
