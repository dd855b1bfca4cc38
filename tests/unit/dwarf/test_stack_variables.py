"""Variables by their place in a frame, as the program itself says where they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from built_program import build, present, run

from tracer.architecture.current import ARCHITECTURE
from tracer.dwarf.data_entries import read_entries
from tracer.dwarf.data_types import DataTypes
from tracer.dwarf.stack_variables import StackVariables
from tracer.elf.image import Image
from tracer.symbols.frame_registers import FrameRegisters

SOURCE = """\
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>
struct slot { long number; void *held; };
struct table { int used; struct slot slots[3]; };
static int shown;
struct walk { int depth; unsigned long code, frame; };
/* The unwinder gives a frame's stack pointer behind the call: the canonical frame address of whom it called. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *given) {
	struct walk *walk = given;
	int depth = walk->depth++;
	if (depth == 1)
		walk->code = _Unwind_GetIP(context);
	walk->frame = _Unwind_GetCFA(context);
	return depth == 2 ? _URC_END_OF_STACK : _URC_NO_REASON;
}
static inline __attribute__((always_inline)) void tell(const char *what, void *at) {
	struct walk walk = { 0 };
	_Unwind_Backtrace(step, &walk);
	printf("%#lx %ld %s\\n", walk.code, (long)at - (long)walk.frame, what);
	shown++;
}
static __attribute__((noinline)) void say(const char *what, void *at) { tell(what, at); }
#define OTHERS long c, long d, long e, long f, long g, void *h
__attribute__((noinline)) void say_more(const char *what, void *at, OTHERS) {
	__asm__ volatile("" : : "r"(c), "r"(d), "r"(e), "r"(f), "m"(g), "m"(h));
	tell(what, at);
}
__attribute__((noinline, noreturn)) void say_and_end(const char *what, void *at, OTHERS) {
	__asm__ volatile("" : : "r"(c), "r"(d), "r"(e), "r"(f), "m"(g), "m"(h));
	tell(what, at);
	exit(0);
}
static __attribute__((noinline)) void escape(volatile void *what) { __asm__ volatile("" : : "r"(what) : "memory"); }
static inline __attribute__((always_inline)) void inlined(int number) {
	void *within[2] = { &number, 0 };
	escape(within);
	say("within[]", &within[1]);
	escape(within);
}
__attribute__((noinline)) void function(struct table *given, int depth) {
	struct table table = { depth };
	void *plain = given;
	escape(&table), escape(&plain), escape(&given);
	say("table.slots[].held", &table.slots[2].held);
	say("table.used", &table.used);
	say("plain", &plain);
	say("given", &given);
	for (int turn = 0; turn < 2; turn++) {
		void *in_block = turn ? 0 : &table;
		escape(&in_block);
		say("in_block", &in_block);
		escape(&in_block);
	}
	{
		struct slot in_block = { depth, given };
		escape(&in_block);
		say("in_block.held", &in_block.held);
		escape(&in_block);
	}
	inlined(depth);
	say_more("table.slots[].held", &table.slots[1].held, depth, 4, 5, 6, 7, given);
	escape(&table), escape(&plain), escape(&given);
}
__attribute__((noinline)) void aligned(void *given) {
	struct slot behind = { 1, given };
	_Alignas(64) void *held[2] = { given, given };
	escape(held), escape(&behind);
	say("held[]", &held[1]);
	escape(held), escape(&behind);
}
__attribute__((noinline)) void in_turns(int count) {
	void *first[4];
	escape(first);
	say("first[]", &first[2]);
	escape(first);
	if (count < 2)
		return;
	void *second[4] = { &count };
	escape(second);
	say("second[]", &second[2]);
	escape(second);
}
__attribute__((noinline)) void large(void *given) {
	void *pages[1500];
	escape(pages);
	say("pages[]", &pages[7]);
	say_more("pages[]", &pages[1499], 3, 4, 5, 6, 7, given);
	escape(pages);
}
__attribute__((noinline)) void ends_in_pushes(void *given, int count) {
	void *last[3] = { given };
	escape(last);
	if (count)
		say_and_end("last[]", &last[1], 3, 4, 5, 6, 7, given);
	escape(last);
}
int main(int argc, char **argv) {
	struct table table = { argc };
	escape(&table);
	say("table.slots[].number", &table.slots[1].number);
	function(&table, argc);
	aligned(&table);
	in_turns(argc);
	in_turns(argc + 1);
	large(&table);
	escape(&table);
	fflush(stdout);
	escape(&table);
	ends_in_pushes(&table, argc);
	return shown == 0;
}
"""
FLAGS = [
    ("gcc", "-O0"), ("gcc", "-O1"), ("gcc", "-O2"), ("gcc", "-O2", "-gdwarf-4"), ("gcc", "-O3"),
    ("gcc", "-O2", "-fno-omit-frame-pointer"), ("clang", "-O0"), ("clang", "-O0", "-gdwarf-4"),
    ("clang", "-O2", "-fno-omit-frame-pointer"), ("clang", "-O1"), ("clang", "-O2"), ("clang", "-O2", "-gdwarf-4"),
    ("clang", "-O3"), ("clang", "-Os"), ("clang", "-Oz"), ("clang", "-O0", "-fomit-frame-pointer"),
    ("clang", "-O2", "-fstack-clash-protection"),
]  # fmt: skip


@contextmanager
def variables(program: Path) -> Iterator[StackVariables]:
    with Image.open(program) as image:
        yield StackVariables(image, DataTypes(image, read_entries), ARCHITECTURE.frame_pointer, FrameRegisters(image))


@pytest.fixture(scope="module", params=FLAGS, ids=" ".join)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, *flags = request.param
    if not present(compiler):
        pytest.fail(f"no {compiler}")
    name = "".join((compiler, *flags)).removesuffix("-gdwarf-4")
    return build(tmp_path_factory.mktemp("frames"), SOURCE, "-g", "-no-pie", *flags, compiler=compiler, name=name)


def said(program: Path) -> list[tuple[int, int, str]]:
    """Return for each call behind which the program is, where a word is and what it is called."""
    lines = [line.split() for line in run(program).splitlines()]
    return [(int(at, 16) - 1, int(offset), name) for at, offset, name in lines]


def test_each_word_has_the_name_that_the_program_gave_it(program: Path) -> None:
    with variables(program) as known:
        told = [("".join(known.at(at, offset) or ()), name) for at, offset, name in said(program)]
    assert len(told) == 17
    assert {pair for pair in told if pair[0] != pair[1]} == {("", name) for name in unnamed(program.name)}


def unnamed(build: str) -> set[str]:
    """Return the variables that nothing says the place of, or not for certain."""
    found = {"held[]"}  # of a frame that is aligned anew, by the stack pointer or an unknown distance from it
    if build.startswith("gcc") and not build.endswith("0"):
        found.add("given")  # GCC keeps it where the DWARF that it writes does not say
    if build.startswith("clang") and not {"frame", "O0", "Oz"} & set(build.split("-")):
        found.add("last[]")  # no call comes back from the pushes of arguments: they could be a prologue's
    if "clash" in build:
        found.add("pages[]")  # room is made in steps
    return found


def test_what_is_beside_a_variable_is_none(program: Path) -> None:
    """Return addresses stand right below the canonical frame address, and what is above is the caller's."""
    with variables(program) as known:
        at = said(program)[0][0]
        assert [known.at(at, offset) for offset in (-8, 0, 8, -(1 << 20))] == [None] * 4
        assert known.at(0x10, -16) is None


def test_a_binary_without_dwarf_has_none(tmp_path: Path) -> None:
    program = build(tmp_path, SOURCE, "-s", "-no-pie", "-O0")
    with variables(program) as known:
        assert known.at(said(program)[0][0], -64) is None
