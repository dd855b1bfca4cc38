"""Generated suppressions, read by LeakSanitizer itself, which goes by frame pointers unless told otherwise."""

from __future__ import annotations

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import server

from tracer.analysis import analyse
from tracer.analysis.suppression import parse_suppressions, unused_notes
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

_CPP_SOURCE = """
#include <cstdlib>
#include <cstring>
#include <functional>
volatile char seen;
static __attribute__((noinline)) char *make_block(int size)
{
	return (char *)memset(malloc(size + 40), 1, 40);
}
namespace { struct Pool { __attribute__((noinline)) char *visit(int size) { return make_block(size) + 1; } }; }
__attribute__((noinline)) void call(std::function<char *(int)> called)
{
	seen = *called(7);
}
extern "C" void leak_in_library(void);
int main(int argc, char **argv)
{
	char spoilt[4096];
	if (strchr(argv[1], 'f'))
		seen = *make_block(24);
	if (strchr(argv[1], 'v')) {
		Pool pool;
		seen = *pool.visit(24);
	}
	if (strchr(argv[1], 'l'))
		call([](int size) { return (char *)memset(malloc(size + 50), 1, 50); });
	if (strchr(argv[1], 's'))
		leak_in_library();
	memset(spoilt, 0, sizeof(spoilt));
	asm volatile("" : : "r"(spoilt) : "memory", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12");
	return 0;
}
"""
_LIBRARY = """
#include <stdlib.h>
#include <string.h>
volatile char seen_there;
static __attribute__((noinline)) void fill(void) { seen_there = *(char *)memset(malloc(40), 1, 40); }
void leak_in_library(void) { fill(); fill(); }
"""
_INVOKE = "__invoke_impl<char*, main(int, char**)::<lambda(int)>&, int>"


def build(folder: Path, *commands: str) -> None:
    for command in commands:
        if subprocess.run(command.split(), check=False, cwd=folder).returncode:
            pytest.skip("needs LeakSanitizer (Debian: libgcc-12-dev)")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lsan")
    (folder / "leaks.c").write_text(_SOURCE)
    build(folder, "gcc -g -O2 -fsanitize=leak leaks.c -o leaks")
    return folder / "leaks"


@pytest.fixture(scope="module")
def cpp_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lsan_cpp")
    (folder / "leaks.cpp").write_text(_CPP_SOURCE)
    (folder / "libfill.c").write_text(_LIBRARY)
    build(folder, "gcc -O1 -s -shared -fPIC libfill.c -o libfill.so",
          "g++ -g -O2 -fsanitize=leak leaks.cpp ./libfill.so -o leaks")  # fmt: skip
    return folder / "leaks"


def run(program: Path, what: str, options: str = "") -> int:
    environment = {"PATH": "/usr/bin:/bin", "LSAN_OPTIONS": options}
    asked = [program, what]
    done = subprocess.run(asked, env=environment, cwd=program.parent, capture_output=True, text=True, check=False)
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
    write_suppressions(replace(analyse(snap, made.symbols), leaks=(leak,), errors=()), out, "lsan")
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


CPP_ENTRIES = {
    "f": (("make_block(int)", "main"), ["leak:^make_block(int)$", "leak:^make_block$"]),
    "l": (("operator()", _INVOKE, "main"), [f"leak:^{_INVOKE}$"]),
    "s": ((None, "leak_in_library", "main"), ["leak:/libfill.so$"]),
}


@pytest.mark.parametrize("what", CPP_ENTRIES)
def test_names_of_cpp_as_gcc_and_its_sanitizers_give_them(cpp_program: Path, tmp_path: Path, what: str) -> None:
    path = tmp_path / "suppressions"
    functions, patterns = CPP_ENTRIES[what]
    module = "libfill.so" if what == "s" else "leaks"
    stack = tuple(Frame(function, module, str(cpp_program.parent / module), address=9) for function in functions)
    maker = Frame("malloc", "libc.so.6", "/lib/libc.so.6")
    leak = replace(entry("main", own=1), stack=(maker, *stack))
    assert [line for line in written(leak, path).splitlines() if line[0] != "#"] == patterns
    assert run(cpp_program, what) == _LEAKS
    assert run(cpp_program, what, f"suppressions={path}") == 0
    assert run(cpp_program, "flsv", f"suppressions={path}") == _LEAKS


def test_a_bare_name_that_others_may_have_is_commented_out(tmp_path: Path) -> None:
    lines = written(entry("Pool<int>::visit(int) const", "main", own=1), tmp_path / "s").splitlines()
    assert lines[1:] == [
        "leak:^Pool<int>::visit(int) const$",
        "# where GCC built it and it is local to its file, it has a name that others may have too:",
        "# leak:^visit$",
    ]


def test_what_leak_sanitizer_replaces_needs_no_frame_pointer(tmp_path: Path) -> None:
    lines = written(entry("operator new(unsigned long)", "Pool::visit()", "main", own=2), tmp_path / "s").splitlines()
    assert lines[1] == "leak:^Pool::visit()$"


def test_clang_has_the_sign_of_the_end_in_closures(tmp_path: Path) -> None:
    lines = written(entry("fill()::$_1::operator()() const", "main", own=1), tmp_path / "s").splitlines()
    assert lines[1] == "leak:^fill()::*_1::operator()() const$"


def test_what_is_generated_is_short_enough_to_be_read(tmp_path: Path) -> None:
    text = written(entry(f"f(Pool<{'int, ' * 2000}int>)", "main", own=1), tmp_path / "s")
    assert parse_suppressions(text, "s")


def test_a_bare_name_beside_the_whole_one_is_not_said_to_match_nothing() -> None:
    rules = parse_suppressions("leak:^make_block(int)$\nleak:^make_block$\nleak:^other$\n", "s")
    notes = unused_notes(rules, [entry("make_block(int)", "main", own=1)])
    assert notes == ("suppression leak:^other$ (s:3) matched nothing",)
