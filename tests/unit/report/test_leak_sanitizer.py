"""Generated suppressions, read by LeakSanitizer itself, which goes by frame pointers unless told otherwise."""

from __future__ import annotations

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import server

from tracer.analysis import analyse
from tracer.model.findings import Leak
from tracer.model.frames import Frame
from tracer.report.suppression_text import write_suppressions

_LEAKS, _FAILED = 23, "LeakSanitizer has encountered a fatal error"
_SOURCE = """
#include <stdlib.h>
#include <string.h>
volatile char seen;
static __attribute__((noinline)) char *make_block(int size, int unused)
{
	return memset(malloc(size + 40), 1, 40);
}
__attribute__((noinline)) void fill(void)
{
	for (int n = 0; n < 7; n++)
		seen = make_block(24, n)[7];
}
__attribute__((noinline)) void name_it(const char *from)
{
	seen = strdup(from)[1];
}
int main(int argc, char **argv)
{
	char spoilt[4096];
	if (strchr(argv[1], 'f'))
		fill();
	if (strchr(argv[1], 'n'))
		name_it(argv[0]);
	memset(spoilt, 0, sizeof(spoilt));
	asm volatile("" : : "r"(spoilt) : "memory", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12");
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lsan")
    (folder / "leaks.c").write_text(_SOURCE)
    built = subprocess.run(["gcc", "-g", "-O2", "-fsanitize=leak", "leaks.c", "-o", "leaks"], check=False, cwd=folder)
    if built.returncode:
        pytest.skip("needs LeakSanitizer (Debian: libgcc-12-dev)")
    return folder / "leaks"


def run(program: Path, what: str, options: str = "") -> int:
    environment = {"PATH": "/usr/bin:/bin", "LSAN_OPTIONS": options}
    done = subprocess.run([program, what], env=environment, capture_output=True, text=True, check=False)
    if _FAILED in done.stderr:
        pytest.skip("LeakSanitizer cannot trace here")
    return done.returncode


def entry(*functions: str, own: int) -> Leak:
    maker = Frame("malloc", "libc.so.6", "/lib/libc.so.6")
    stack = (maker, *(Frame(function, "leaks", "/leaks", address=9) for function in functions))
    leak = Leak("1" * 12, "allocation", "malloc", 1, "leaked", 7, 448, stack, True, "complete", own_frame=own)
    return replace(leak, maker="malloc")


def written(leak: Leak, path: Path) -> str:
    snap, made = server()
    out = io.StringIO()
    write_suppressions(replace(analyse(snap, made.symbols), leaks=(leak,)), out, "lsan")
    path.write_text(out.getvalue())
    return out.getvalue()


def test_a_name_that_the_compiler_changed(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "suppressions"
    text = written(entry("make_block.constprop.0", "fill", "main", own=1), path)
    assert text.splitlines()[1:] == ["leak:^make_block*$"]
    assert run(program, "f") == _LEAKS
    assert run(program, "f", f"suppressions={path}") == 0
    assert run(program, "fn", f"suppressions={path}") == _LEAKS


def test_what_it_does_not_see_without_frame_pointers_is_said(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "suppressions"
    lines = written(entry("strdup", "name_it", "main", own=2), path).splitlines()
    assert lines[1] == "# where strdup has no frame pointer: LSAN_OPTIONS=fast_unwind_on_malloc=0"
    assert lines[2] == "leak:^name_it$"
    assert run(program, "n", f"suppressions={path}") == _LEAKS
    assert run(program, "n", f"suppressions={path}:fast_unwind_on_malloc=0") == 0
