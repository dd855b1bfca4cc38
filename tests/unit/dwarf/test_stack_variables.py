"""Variables by their place in a frame, as the program itself says where they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from built_program import build, present, run

from tracer.architecture.current import ARCHITECTURE
from tracer.dwarf.data_types import DataTypes
from tracer.dwarf.stack_variables import StackVariables
from tracer.elf.image import Image

SOURCE = """\
#include <stdio.h>
struct slot { long number; void *held; };
struct table { int used; struct slot slots[3]; };
static int shown;
#define SAY(what, at) say(what, (char *)(at) - (char *)__builtin_dwarf_cfa())
static __attribute__((noinline)) void say(const char *what, long offset) {
	printf("%p %ld %s\\n", __builtin_return_address(0), offset, what);
	shown++;
}
static __attribute__((noinline)) void escape(volatile void *what) { __asm__ volatile("" : : "r"(what) : "memory"); }
static inline __attribute__((always_inline)) void inlined(int number) {
	void *within[2] = { &number, 0 };
	escape(within);
	SAY("within[]", &within[1]);
	escape(within);
}
__attribute__((noinline)) void function(struct table *given, int depth) {
	struct table table = { depth };
	void *plain = given;
	escape(&table), escape(&plain), escape(&given);
	SAY("table.slots[].held", &table.slots[2].held);
	SAY("table.used", &table.used);
	SAY("plain", &plain);
	SAY("given", &given);
	for (int turn = 0; turn < 2; turn++) {
		void *in_block = turn ? 0 : &table;
		escape(&in_block);
		SAY("in_block", &in_block);
		escape(&in_block);
	}
	{
		struct slot in_block = { depth, given };
		escape(&in_block);
		SAY("in_block.held", &in_block.held);
		escape(&in_block);
	}
	inlined(depth);
	escape(&table), escape(&plain), escape(&given);
}
int main(int argc, char **argv) {
	struct table table = { argc };
	escape(&table);
	SAY("table.slots[].number", &table.slots[1].number);
	function(&table, argc);
	escape(&table);
	return shown == 0;
}
"""
FLAGS = [
    ("gcc", "-O0"), ("gcc", "-O1"), ("gcc", "-O2"), ("gcc", "-O2", "-gdwarf-4"), ("gcc", "-O3"),
    ("gcc", "-O2", "-fno-omit-frame-pointer"), ("clang", "-O0"), ("clang", "-O0", "-gdwarf-4"),
    ("clang", "-O2", "-fno-omit-frame-pointer"),
]  # fmt: skip


@contextmanager
def variables(program: Path) -> Iterator[StackVariables]:
    with Image.open(program) as image:
        yield StackVariables(image, DataTypes(image), ARCHITECTURE.frame_pointer)


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
    assert len(told) == 9
    # GCC, where it optimises, keeps this one where the DWARF that it writes does not say.
    nowhere = [("", "given")] if program.name.startswith("gcc") and not program.name.endswith("0") else []
    assert [pair for pair in told if pair[0] != pair[1]] == nowhere


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
