"""Generated suppressions, read by valgrind's memcheck itself."""

from __future__ import annotations

import io
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest
from hand_made import server

from tracer.analysis import analyse
from tracer.analysis.suppression import parse_suppressions
from tracer.model.findings import Leak
from tracer.model.frames import Frame
from tracer.report.suppression_text import write_suppressions

_SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
volatile char seen;
static __attribute__((noinline)) char *log_slow(int size, int unused)
{
	return (char *)memset(malloc(size + 40), 1, 40);
}
extern "C" __attribute__((noinline)) void fill(void)
{
	for (int n = 0; n < 7; n++)
		seen = log_slow(24, n)[7];
}
extern "C" __attribute__((noinline)) char *xmalloc(int size) { return (char *)memset(malloc(size), 1, 1); }
extern "C" __attribute__((noinline)) void wrapped(void) { seen = *xmalloc(88); }
extern "C" __attribute__((noinline)) void align(void)
{
	void *made;
	if (posix_memalign(&made, 64, 640) == 0)
		seen = *(char *)memset(made, 1, 640);
}
struct Conn { char bytes[45]; };
__attribute__((noinline)) void many(void) { seen = *(char *)memset((void *)new Conn[3], 1, 45); }
struct Pool { char *visit(int size) { return (char *)memset((void *)new Conn[size], 1, 45); } };
__attribute__((noinline)) void pooled(void) { Pool pool; seen = *pool.visit(3); }
extern "C" void *in_thread(void *) { seen = *(char *)memset(malloc(99), 1, 99); return nullptr; }
void start(void)
{
	pthread_t thread;
	if (!pthread_create(&thread, nullptr, in_thread, nullptr))
		pthread_join(thread, nullptr);
}
int main(int argc, char **argv)
{
	for (char *what = argv[1]; *what; what++) {
		if (*what == 'f') fill();
		if (*what == 'a') align();
		if (*what == 'x') wrapped();
		if (*what == 'n') many();
		if (*what == 'i') pooled();
		if (*what == 't') start();
	}
	return 0;
}
"""
STACKS = {
    "f": ("malloc", ("_ZL8log_slowii.constprop.0.isra.0", "fill", "main"), 0),
    "x": ("malloc", ("xmalloc", "wrapped", "main"), 0),
    "a": ("posix_memalign", ("align", "main"), 0),
    "n": ("malloc", ("_Znwm", "_Z4manyv", "main"), 0),
    "i": ("malloc", ("_Znwm", "_ZN4Pool5visitEi", "_Z6pooledv", "main"), 2),
    "t": ("malloc", ("in_thread", "start_thread", "clone3"), 0),
}
"""What makes the block, the functions above it, and how many of these, of the program's, are inlined."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if which("valgrind") is None:
        pytest.skip("needs valgrind")
    folder = tmp_path_factory.mktemp("memcheck")
    (folder / "leaks.cpp").write_text(_SOURCE)
    subprocess.run(["g++", "-g", "-O2", "-pthread", "leaks.cpp", "-o", "leaks"], check=True, cwd=folder)
    return folder / "leaks"


def lost(program: Path, what: str, *suppressions: Path) -> int:
    """Return how many blocks memcheck calls definitely lost and does not pass over."""
    options = [f"--suppressions={path}" for path in suppressions]
    command = ["valgrind", "--leak-check=full", "--read-inline-info=yes", *options, program, what]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.search(r"definitely lost: [\d,]+ bytes in ([\d,]+) blocks", said)
    return int(found[1]) if found else 0


def entry(what: str) -> Leak:
    maker, functions, inlined = STACKS[what]
    stack = [Frame(maker, "libc.so.6", "/lib/libc.so.6")]
    for index, function in enumerate(functions):
        stack.append(Frame(function, "leaks", "/leaks", address=index, inlined=0 < index < inlined))
    leak = Leak("1" * 12, "allocation", maker, 1, "leaked", 7, 448, tuple(stack), True, "complete")
    return replace(leak, maker=maker)


@pytest.mark.parametrize("what", STACKS)
def test_memcheck_passes_over_the_entry_and_no_other(program: Path, tmp_path: Path, what: str) -> None:
    snap, made = server()
    out = io.StringIO()
    write_suppressions(replace(analyse(snap, made.symbols), leaks=(entry(what),)), out, "valgrind")
    path = tmp_path / "suppressions"
    path.write_text(out.getvalue())
    alone = lost(program, what)
    assert alone == (7 if what == "f" else 1)
    assert lost(program, what, path) == 0
    assert lost(program, "fanitx", path) == 12 - alone


@pytest.mark.parametrize(
    ("what", "makers", "depth"), [("f", ["malloc"], 3), ("a", ["posix_memalign"], 2), ("n", ["malloc", "_Znwm"], 2)]
)
def test_memcheck_passes_over_an_entry_of_a_program_without_symbols(
    program: Path, tmp_path: Path, what: str, makers: list[str], depth: int
) -> None:
    """Where it has no name of main, it calls what called main `(below main)`, and looks no further."""
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    stack = [Frame(maker, "libc.so.6", "/lib/libc.so.6") for maker in makers]
    stack += [Frame(None, "stripped", "/stripped", address=number) for number in range(depth)]
    stack += [Frame("__libc_start_call_main", "libc.so.6", "/lib/libc.so.6"), Frame("__libc_start_main"), Frame(None)]
    leak = Leak("1" * 12, "allocation", makers[0], 1, "leaked", 7, 448, tuple(stack), True, "complete")
    leak = replace(leak, maker=makers[0])
    snap, made = server()
    out = io.StringIO()
    write_suppressions(replace(analyse(snap, made.symbols), leaks=(leak,)), out, "valgrind")
    path = tmp_path / "suppressions"
    path.write_text(out.getvalue())
    alone = lost(stripped, what)
    assert alone == (7 if what == "f" else 1)
    assert lost(stripped, what, path) == 0
    assert lost(stripped, "fan", path) == 9 - alone
    (rule,) = parse_suppressions(path.read_text(), "s")
    assert rule.matches(leak)
    deeper = replace(leak, stack=(*stack[:-3], stack[-4], *stack[-3:]))
    assert rule.matches(deeper) is (what == "a")  # where any frames may follow what makes a block
