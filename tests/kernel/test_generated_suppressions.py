"""Suppressions that a trace is asked for: memcheck reads them as they are, and so does the next trace."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest
from conftest import Refleak

_SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <string>
namespace net {
template <class T> struct Pool {
	__attribute__((noinline)) char *visit(int size) { return (char *)memset(malloc(size), 1, 1); }
};
struct Conn { std::string name; };
__attribute__((noinline)) Conn *dial(void)
{
	Conn *conn = new Conn;
	conn->name = "a name that does not stand in the string itself";
	return conn;
}
}
static __attribute__((noinline)) char *log_slow(int size, int unused) { return (char *)memset(malloc(size), 1, 1); }
extern "C" __attribute__((noinline)) char *xmalloc(int size) { return (char *)memset(malloc(size), 1, 1); }
volatile char seen;
int main(void)
{
	net::Pool<std::string> pool;
	for (int n = 0; n < 7; n++) {
		seen = *pool.visit(41);
		seen = net::dial()->name[0];
		seen = *log_slow(53, n);
		seen = *xmalloc(61);
	}
	return 0;
}
"""


@pytest.mark.parametrize("stripped", [False, True])
def test_memcheck_and_the_next_trace_pass_over_all_of_it(refleak: Refleak, tmp_path: Path, stripped: bool) -> None:
    if which("valgrind") is None:
        pytest.skip("needs valgrind")
    (tmp_path / "leaks.cpp").write_text(_SOURCE)
    flags = ["-s"] if stripped else ["-g"]
    program = tmp_path / "leaks"
    subprocess.run(["g++", *flags, "-O2", tmp_path / "leaks.cpp", "-o", program], check=True)
    launcher = Path(__file__).parents[2] / "refleak"
    path = tmp_path / "leaks.supp"
    subprocess.run([launcher, "--gen-suppressions", "valgrind", "-o", path, program], check=True)
    command = ["valgrind", "--leak-check=full", f"--suppressions={path}", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "definitely lost: 0 bytes" in said, said + path.read_text()
    (suppressed,) = re.findall(r"suppressed: [\d,]+ bytes in (\d+) blocks", said)
    assert int(suppressed) == 28
    run = refleak("--suppressions", path, "--reachability", "auto", target=(program,))
    assert [leak for leak in run.leaks if leak["reachability"] == "lost"] == []
