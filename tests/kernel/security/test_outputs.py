"""What root writes goes where it was told, or nowhere; who the target runs as; how many files may be open."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from second_user import REFLEAK, UID, compiled, under_sudo, users_folder

LEAST = 512
LEAKY = "#include <stdlib.h>\nint main(void) { return malloc(7) == malloc(9); }\n"
SECRET = "root's own\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    with users_folder() as made:
        compiled(made / "leaky", LEAKY)
        yield made


@pytest.mark.parametrize("name", ["run.refleak.new", "report.json", "run.refleak"])
def test_a_link_that_was_laid_in_the_way(folder: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text(SECRET)
    link = folder / name
    link.symlink_to(precious)
    os.lchown(link, UID, UID)
    output = name.removesuffix(".new")
    run = under_sudo("--force", "-o", output, "--exec", "./leaky", cwd=folder)
    assert "Traceback" not in run.stderr
    assert precious.read_text() == SECRET
    assert link.is_symlink()
    assert (run.returncode == 74) == (output == name), run.stderr


def test_no_user_of_that_number(folder: Path) -> None:
    for number in ("3999999", "no-number", "-1", "99999999999999999999"):
        run = under_sudo("--exec", "/usr/bin/touch", "ran", cwd=folder, variables={"SUDO_UID": number})
        first, second = run.stderr.splitlines()
        assert (run.returncode, run.stdout) == (2, "")
        assert number in first and "--user" in second
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("capability", ["setuid", "setgid"])
def test_who_cannot_become_the_user_runs_nothing(folder: Path, capability: str) -> None:
    without = ("setpriv", f"--bounding-set=-{capability}", "--inh-caps=-all", REFLEAK)
    run = under_sudo("--exec", "/usr/bin/touch", "ran", cwd=folder, refleak=without)
    assert run.returncode == 66
    assert run.stderr.startswith("refleak: cannot run /usr/bin/touch: Operation not permitted\n")
    assert not (folder / "ran").exists()


def limited(limit: tuple[int, int], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)

    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    return subprocess.run(
        [REFLEAK, *words], cwd=folder, capture_output=True, text=True, timeout=120, preexec_fn=limit_files,
        env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("hard", [64, 101, 102, 200, 511])
def test_too_few_files_are_told_in_one_line(folder: Path, hard: int) -> None:
    run = limited((hard, hard), folder, "--exec", "/usr/bin/touch", "ran")
    first, second = run.stderr.splitlines()
    assert run.returncode == 79
    assert f"only {hard} files may be open" in first and "ulimit -Hn" in second
    assert not (folder / "ran").exists()


def test_the_soft_limit_is_raised_for_refleak_alone(folder: Path) -> None:
    report = folder / "report.json"
    run = limited((64, 4096), folder, "-o", str(report), "--exec", "/bin/sh", "-c", "ulimit -Sn; ulimit -Hn")
    assert (run.returncode, run.stdout.split()) == (0, ["64", "4096"]), run.stderr
    assert json.loads(report.read_text())["complete"]


def test_many_processes_one_after_the_other_have_room_in_the_least(folder: Path) -> None:
    report = folder / "report.json"
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do (:); done"
    run = limited((LEAST, LEAST), folder, "-o", str(report), "--exec", "/bin/sh", "-c", script)
    assert run.returncode == 0, run.stderr
    document = json.loads(report.read_text())
    assert document["probes"]["unresolved"] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "small", place], check=True)
    (place / "filler").write_bytes(b"x" * 4096)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_report_that_finds_no_room(folder: Path, small_disk: Path) -> None:
    run = under_sudo("-o", small_disk / "report.json", "--exec", "./leaky", cwd=folder)
    assert run.returncode == 74
    assert "LEAK" in run.stderr and "No space left on device" in run.stderr
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("name", ["report.json", "run.refleak"])
def test_a_folder_that_is_gone_at_the_end(folder: Path, tmp_path: Path, name: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rm -rf {gone}; exec ./leaky"
    run = under_sudo("--user", "root", "-o", gone / name, "--exec", "/bin/sh", "-c", script, cwd=folder)
    assert run.returncode == 74, run.stderr
    assert "LEAK" in run.stderr and "cannot write" in run.stderr
    assert "recorded" not in run.stderr and "Traceback" not in run.stderr
    assert not gone.exists()


def test_standard_output_by_its_name(folder: Path) -> None:
    run = under_sudo("-o", "/dev/stdout", "--format", "json", "--exec", "./leaky", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert [leak["count"] for leak in json.loads(run.stdout)["leaks"]] == [1, 1]
