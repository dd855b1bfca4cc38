"""A target in which nothing can be probed is refused before it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REFLEAK = Path(__file__).parents[2] / "refleak"
PROGRAM = """\
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
	char byte;
	if (argc > 1)
		return close(open(argv[1], O_CREAT | O_WRONLY, 0600));
	write(1, "", 1);
	return (int)read(0, &byte, 1);
}
"""


@pytest.fixture
def stripped(tmp_path: Path) -> Path:
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-static", "-s", "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
    return tmp_path / "program"


def test_stripped_static_program_does_not_run(stripped: Path) -> None:
    trace = subprocess.run(
        [REFLEAK, "--exec", stripped, stripped.with_name("ran")], capture_output=True, text=True, check=False
    )
    assert trace.returncode == 67, trace.stderr
    assert trace.stderr.splitlines()[0].startswith(f"refleak: nothing to probe in {stripped}:")
    assert not stripped.with_name("ran").exists()


def test_process_that_cannot_be_probed_runs_on(stripped: Path) -> None:
    with subprocess.Popen([stripped], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
        assert target.stdin and target.stdout and target.stdout.read(1) == b"\0"
        trace = subprocess.run([REFLEAK, "-p", str(target.pid)], capture_output=True, text=True, check=False)
        assert trace.returncode == 67, trace.stderr
        assert target.poll() is None
        target.stdin.close()
        assert target.wait() == 0


def test_dynamic_program_without_sites_may_load_some_later() -> None:
    trace = subprocess.run([REFLEAK, "--refs-only", "--exec", "/bin/true"], capture_output=True, text=True, check=False)
    assert trace.returncode == 0, trace.stderr
