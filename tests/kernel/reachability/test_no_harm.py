"""A program that keeps everything loses nothing, and one whose tracer dies meanwhile goes on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, Refleak

HERE = Path(__file__).parent
SEEDS = (1, 2, 3, 5, 7)
KILLS = 5

LARGE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
	char *volatile block = malloc(200 << 20);

	memset(block, 1, 200 << 20);
	printf("%d\\n", getpid());
	fflush(stdout);
	return 7;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("no_harm")
    (folder / "large.c").write_text(LARGE)
    for source in (HERE / "holds_everything.c", folder / "large.c"):
        command = ["gcc", "-O2", "-w", "-pthread", "-o", str(folder / source.stem), str(source)]
        subprocess.run(command, check=True, timeout=100)
    return folder


def test_nothing_is_lost_that_is_held(refleak: Refleak, programs: Path) -> None:
    """Where the machine gave refleak no time, it says that it did not look; it must have looked once."""
    classes = set()
    for seed in SEEDS:
        run = refleak("--reachability", "auto", "--no-mappings", target=(programs / "holds_everything", seed))
        found = {leak["reachability"] for leak in run.leaks if leak["state"] == "leaked"}
        assert found <= ({"reachable"} if run.report["scans"][0]["looked_into"] else {None})
        classes |= found
    assert "reachable" in classes


def test_a_target_whose_tracer_is_killed_goes_on(programs: Path) -> None:
    for _ in range(KILLS):
        command = [CHECKOUT / "refleak", "-o", os.devnull, "--exec", programs / "large"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as tracer:
            assert tracer.stdout is not None
            target = os.pidfd_open(int(tracer.stdout.readline()))
            try:
                tracer.send_signal(signal.SIGKILL)
                assert select.select([target], [], [], 60)[0], "the target did not end"
            finally:
                os.close(target)
