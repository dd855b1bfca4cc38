"""`refleak discover --try`: guesses by name, and what a run makes of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.specs.files import parse_spec

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trial") / "guessed"
    subprocess.run(["gcc", "-g", "-O1", "-o", path, HERE / "guessed.c"], check=True)
    return path


def discovered(program: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "refleak", "discover", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_run_comments_out_what_it_disproves(program: Path) -> None:
    done = discovered(program, "--try", program, "--help")
    assert done.returncode == 0, done.stderr
    lines = [line.strip("# ").strip() if line.startswith("# ") else line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == f"Tried with: {program} --help (exit status 0)"
    for line in (
        '"conn_new",  # 3 calls', '"conn_new_listening",  # not tried', '"conn_new_unused",  # not tried',
        '"conn_ref",  # 3 calls', '"conn_unref",  # 6 calls',
        'get = "hat_ref"  # 7 calls, and 7 objects ended that still had references: it takes none',
        '"hat_new",  # 7 calls', '"hat_unref",  # 7 calls',
        '"page_new",  # 5 calls', '"page_free",  # 5 calls', '"node_free",  # not tried',
        '# "page_new_default",  # 5 calls, 4 returned what was counted already: it looks up, or an end is missing',
        '"flag_free",  # 2 calls, 1 of objects that had ended: a get or a create is missing',
    ):  # fmt: skip
        assert line in lines, done.stdout
    left = {type_.name: {f.spec.function for f in type_.functions} for type_ in parse_spec(done.stdout, "", "").types}
    assert left == {
        "conn": {"conn_new", "conn_new_listening", "conn_new_unused", "conn_ref", "conn_unref"},
        "hat": {"hat_new", "hat_unref"}, "page": {"page_new", "page_free"},
    }  # fmt: skip


def test_the_output_of_the_command_is_no_part_of_the_spec(program: Path, tmp_path: Path) -> None:
    done = discovered(program, "--try", program)
    assert "done" in done.stderr and "done" not in done.stdout
    assert done.stderr.endswith("(exit status 0): 12 of 15 functions were called, 6 are disproved\n")
    kept = tmp_path / "guessed.toml"
    done = discovered(program, "-o", kept, "--try", program)
    assert done.stdout == "done\n"
    assert kept.read_text().startswith("# Tried with: ")


def test_a_command_that_calls_nothing_is_told(program: Path) -> None:
    done = discovered(program, "--try", "true")
    assert done.returncode == 0 and "disproved" not in done.stdout
    assert done.stderr.endswith("(exit status 0): none of 15 functions was called: does it use this library?\n")


def test_what_the_command_lacks_is_an_error(program: Path) -> None:
    done = discovered(program, "--try")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--try without a command" in done.stderr
    done = discovered(program, "--try", "./no-such-program")
    assert done.returncode == 66 and done.stdout == "" and "Traceback" not in done.stderr
