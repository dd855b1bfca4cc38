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
	getchar();
	return 7;
}
"""

RESERVES = """
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void tell(void)
{
	char line[256];
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "VmPTE:", 6) == 0)
			printf("%d %ld\\n", getpid(), atol(line + 6));
	fclose(file);
	fflush(stdout);
}
int main(int count, char **arguments)
{
	size_t size = (size_t)atol(arguments[1]) << 30;
	struct pollfd input = { .fd = 0, .events = POLLIN };
	void *volatile last = NULL;

	if (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return 1;
	tell();
	while (poll(&input, 1, 10) == 0)
		free(last), last = malloc(77);
	tell();
	return 0;
}
"""
"""Maps so many GiB, and says how many KiB of page tables it has, now and when it reads something; it makes blocks."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("no_harm")
    (folder / "large.c").write_text(LARGE)
    (folder / "reserves.c").write_text(RESERVES)
    for source in (HERE / "holds_everything.c", folder / "large.c", folder / "reserves.c"):
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
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, bufsize=0, **pipes) as tracer:
            assert tracer.stdin is not None
            assert tracer.stdout is not None
            target = os.pidfd_open(int(tracer.stdout.readline()))
            try:
                tracer.stdin.write(b"\n")
                tracer.send_signal(signal.SIGKILL)
                assert select.select([target], [], [], 60)[0], "the target did not end"
            finally:
                os.close(target)


@pytest.mark.parametrize("gibibytes", [200, 20_000])
def test_what_is_only_reserved_gets_no_page_tables(refleak: Refleak, programs: Path, gibibytes: int) -> None:
    """It got one for each 64 MiB: 900 MiB of a program with a sanitizer, whose shadow takes 16 TiB."""
    command = [programs / "reserves", str(gibibytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pid, before = map(int, process.stdout.readline().split())
        run = refleak("--reachability", "auto", "--duration", "0.2", pid=pid)
        process.stdin.write(b"x")
        _, after = map(int, process.stdout.readline().split())
        process.stdin.close()
    assert after - before < 200
    assert run.report["scans"][0]["looked_into"] is (gibibytes == 200)
