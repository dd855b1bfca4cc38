"""examples/mutants: a program in which one call is made twice, or left out, goes on as if it had been made once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from built_program import build

sys.path.append(str(Path(__file__).parents[2] / "examples" / "mutants"))

from call_sites import Code, Instruction, read_code, write_mutant
from doubled import Assembly, NoRoom, move, to_be_moved, write_doubled

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
static int depth, calls, seen[8];
static void *returned[8];
static const char *volatile word = "first";

/* Takes all its arguments, remembers where it returns to, and spoils what a call may. */
NOINLINE long take(long a, long b, long c, long d, long e, long f) {
	returned[calls] = __builtin_return_address(0);
	seen[calls++] = a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
	asm volatile("" ::: "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11");
	return calls;
}
NOINLINE void down(int n) {
	depth += n > 0;
	if (n > 0)
		down(n - 1);
	calls++;
}
NOINLINE long before_a_value(long a) { long got = take(a, 2, 3, 4, 5, 6); return got * 3 + a; }
NOINLINE long before_a_call(long a) { take(a, 1, 1, 1, 1, 1); return before_a_value(a) + 1; }
NOINLINE const char *before_a_word(long a) { take(a, 1, 1, 1, 1, 1); return word; }
NOINLINE long where_paths_meet(long a) {
	long more = a;
	if (a > 5) take(a, 1, 1, 1, 1, 1);
	asm volatile("movl $77, %%eax; cltq" : "=a"(more));
	return more + a;
}
NOINLINE long before_a_branch(long a) { return take(a, 1, 1, 1, 1, 1) > 100 ? a : -a; }
NOINLINE int not_run(const char *name) {
	asm volatile(".skip 700, 0x90");
	return puts(name);
}
int main(int argc, char **argv) {
	if (argc > 9) return not_run(argv[1]);
	switch (atoi(argv[1])) {
	case 0: printf("%ld", before_a_value(1)); break;
	case 1: printf("%ld", before_a_call(1)); break;
	case 2: printf("%s", before_a_word(1)); break;
	case 3: printf("%ld %ld", where_paths_meet(1), where_paths_meet(6)); break;
	case 4: printf("%ld", before_a_branch(1)); break;
	case 5: down(3); printf("%d", depth); break;
	}
	printf("; %d calls:", calls);
	for (int i = 0; i < calls && i < 8; i++) printf(" %d", seen[i]);
	printf(returned[1] == returned[0] ? ", from the same place\n" : "\n");
}
"""
ALL = ["before_a_value", "before_a_call", "before_a_word", "where_paths_meet", "before_a_branch"]
DOUBLED: Mapping[str, str] = {
    "before_a_value": "4; 2 calls: 654321 654321, from the same place\n",
    "before_a_call": "11; 3 calls: 111111 111111 654321, from the same place\n",
    "before_a_word": "first; 2 calls: 111111 111111, from the same place\n",
    "where_paths_meet": "78 83; 2 calls: 111116 111116, from the same place\n",
    "before_a_branch": "-1; 2 calls: 111111 111111, from the same place\n",
}
"""What is printed where the call in a function is made twice: what that returned the first time, and each call."""


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Code:
    folder = tmp_path_factory.mktemp("doubled")
    binary = build(folder, PROGRAM, request.param, "-fno-omit-frame-pointer", "-w")
    names = {"take": "thing", "down": "thing"}
    program = SimpleNamespace(binary=binary, puts=names, gets={}, put_stub=None, get_stub=None, unused="not_run")
    return read_code(program)


def call_in(code: Code, function: str) -> int:
    (address,) = (one for one in code.calls if code.function(one) == function)
    return address


def printed(binary: Path, function: str) -> str:
    number = ALL.index(function) if function in ALL else len(ALL)
    return subprocess.run([binary, str(number)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("function", ALL)
def test_a_call_is_made_twice(code: Code, function: str, tmp_path: Path) -> None:
    write_doubled(code, call_in(code, function), tmp_path / "mutant", one_in_four=False)
    assert printed(tmp_path / "mutant", function) == DOUBLED[function]


@pytest.mark.parametrize("function", ALL)
def test_what_the_program_prints_is_what_one_call_returned(code: Code, function: str) -> None:
    value, _ = DOUBLED[function].split("; ")
    assert printed(code.program.binary, function).startswith(f"{value}; ") or function == "before_a_call"


def test_calls_within_the_call_are_doubled_too(code: Code, tmp_path: Path) -> None:
    write_doubled(code, call_in(code, "down"), tmp_path / "mutant", one_in_four=False)
    assert printed(tmp_path / "mutant", "down").startswith("7; 15 calls:")


def test_sometimes_it_is_made_once(code: Code, tmp_path: Path) -> None:
    write_doubled(code, call_in(code, "before_a_value"), tmp_path / "mutant", one_in_four=True)
    found = {printed(tmp_path / "mutant", "before_a_value") for _ in range(200)}
    assert found == {DOUBLED["before_a_value"], printed(code.program.binary, "before_a_value")}


def test_the_rest_of_the_program_stays(code: Code, tmp_path: Path) -> None:
    address = call_in(code, "before_a_value")
    write_doubled(code, address, tmp_path / "mutant", one_in_four=False)
    for other in ALL[1:]:
        if other != "before_a_call":
            assert printed(tmp_path / "mutant", other) == printed(code.program.binary, other)
    assert len((tmp_path / "mutant").read_bytes()) == len(code.program.binary.read_bytes())


@pytest.mark.parametrize(
    ("names", "left_out"),
    [({"puts": {"take": "thing"}}, "1"), ({"gets": {"take": "thing"}}, "4"), ({"get_stub": "take"}, "4")],
)
def test_a_call_that_is_left_out_returns_what_it_would_have(
    code: Code, names: dict[str, object], left_out: str, tmp_path: Path
) -> None:
    """A put that the count is not 0, a get its object (1 here), the stub of a get 1."""
    program = SimpleNamespace(**{**vars(code.program), "puts": {}, "gets": {}, **names})
    for one_in_four in (False, True):
        write_mutant(replace(code, program=program), call_in(code, "before_a_value"), tmp_path / "mutant", one_in_four)
        found = {printed(tmp_path / "mutant", "before_a_value").partition(":")[0] for _ in range(200)}
        as_ever = printed(code.program.binary, "before_a_value").partition(":")[0]
        assert found == {f"{left_out}; 0 calls", *[as_ever] * one_in_four}


def behind(*instructions: tuple[int, bytes, str], targets: frozenset[int], switches: frozenset[str]) -> Code:
    return Code(
        SimpleNamespace(), SimpleNamespace(), {0x100: "take"}, {"caller": 0x80, "next": 0x10C},
        {0x100: [Instruction(*one) for one in instructions]}, {}, targets, switches,
    )  # fmt: skip


TWO = (0x105, b"\x48\x89\xc3", "mov %rax,%rbx"), (0x108, b"\x48\x89\xdf", "mov %rbx,%rdi")
NEXT = 0x10C, b"\x55", "push %rbp"


@pytest.mark.parametrize(
    ("instructions", "targets", "switches", "said"),
    [
        (TWO, {0x108}, set(), "0x108 may be jumped to"),
        (TWO, set(), {"caller"}, "0x108 may be jumped to"),
        ((TWO[0], NEXT), set(), set(), "the function ends"),
        (((0x105, b"\xff\xd0", "call *%rax"), *TWO), set(), set(), "a call or loop"),
        (((0x105, b"\xe3\x10", "jrcxz 117"), *TWO), set(), set(), "a call or loop"),
    ],
)
def test_what_cannot_be_moved_is_refused(
    instructions: tuple[tuple[int, bytes, str], ...], targets: set[int], switches: set[str], said: str
) -> None:
    code = behind(*instructions, targets=frozenset(targets), switches=frozenset(switches))
    with pytest.raises(NoRoom, match=said):
        to_be_moved(code, 0x100)


def test_what_is_behind_the_call_may_be_jumped_to() -> None:
    code = behind(*TWO, targets=frozenset({0x105, 0x10B}), switches=frozenset())
    assert [one.address for one in to_be_moved(code, 0x100)] == [0x105, 0x108]


@pytest.mark.parametrize(
    ("code", "text", "wanted"),
    [
        (b"\x48\x89\xc3", "mov %rax,%rbx", "4889c3"),
        (b"\xeb\x10", "jmp 1012", "e90df0ffff"),
        (b"\x74\x10", "je 1012", "0f840cf0ffff"),
        (b"\x0f\x85\x10\x00\x00\x00", "jne 1016", "0f8510f0ffff"),
        (b"\x48\x8b\x05\x10\x00\x00\x00", "mov 0x10(%rip),%rax        # 1017 <word>", "488b0510f0ffff"),
        (b"\xc7\x05\x10\x00\x00\x00\x10\x00\x00\x00", "movl $0x10,0x10(%rip)        # 101a", "c70510f0ffff10000000"),
    ],
)
def test_instructions_mean_the_same_elsewhere(code: bytes, text: str, wanted: str) -> None:
    moved = Assembly(0x2000)
    move(moved, Instruction(0x1000, code, text))
    assert moved.code.hex() == wanted
