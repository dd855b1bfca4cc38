"""examples/mutants: a program in which a put is made before the call before it does all else as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from built_program import build

sys.path.append(str(Path(__file__).parents[2] / "examples" / "mutants"))

from call_sites import Code, Instruction, read_code
from doubled import NoRoom
from moved import use_before, write_moved

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
static void *returned[2];
static volatile int done;
struct holder { long *held; };

NOINLINE void put(long *thing) {
	returned[0] = __builtin_return_address(0);
	printf("put %ld; ", *thing);
	asm volatile("" ::: "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11");
}
NOINLINE long use(long *thing, long b, long c, long d, long e, long f) {
	returned[1] = __builtin_return_address(0);
	printf("use %ld with %ld; ", *thing, b + 10 * c + 100 * d + 1000 * e + 10000 * f);
	asm volatile("" ::: "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11");
	return *thing + 1;
}
NOINLINE long of_a_variable(long *thing) { long got = use(thing, 2, 3, 4, 5, 6); put(thing); return got; }
NOINLINE long of_a_slot(struct holder *holder) { use(holder->held, 1, 1, 1, 1, 1); put(holder->held); return 7; }
NOINLINE void returned_by_it(long *thing) { put(thing + use(thing, 2, 3, 4, 5, 6) - 10); done++; }
NOINLINE void maybe(long *thing) { if (*thing > 5) use(thing, 1, 1, 1, 1, 1); put(thing); done++; }
NOINLINE int not_run(const char *name) {
	asm volatile(".skip 900, 0x90");
	return puts(name);
}
int main(int argc, char **argv) {
	long thing = 9, got = 0;
	struct holder holder = {&thing};
	if (argc > 9) return not_run(argv[1]);
	switch (atoi(argv[1])) {
	case 0: got = of_a_variable(&thing); break;
	case 1: got = of_a_slot(&holder); break;
	case 2: returned_by_it(&thing); break;
	case 3: maybe(&thing); break;
	}
	printf("got %ld%s", got, returned[0] == returned[1] ? ", from the same place\n" : "\n");
}
"""
MOVED = ["of_a_variable", "of_a_slot"]
AS_EVER = ["use 9 with 65432; put 9; got 10\n", "use 9 with 11111; put 9; got 7\n"]
BEFORE = [
    "put 9; use 9 with 65432; got 10, from the same place\n",
    "put 9; use 9 with 11111; got 7, from the same place\n",
]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    binary = build(tmp_path_factory.mktemp("moved"), PROGRAM, "-O2", "-fno-ipa-ra", "-w")
    names = {"put": "thing"}
    program = SimpleNamespace(binary=binary, puts=names, gets={}, put_stub=None, get_stub=None, unused="not_run")
    return read_code(program)


def put_in(code: Code, function: str) -> int:
    (address,) = (one for one in code.calls if code.function(one) == function)
    return address


def printed(binary: Path, number: int) -> str:
    return subprocess.run([binary, str(number)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("number", [0, 1], ids=MOVED)
def test_a_put_is_made_before_the_use(code: Code, number: int, tmp_path: Path) -> None:
    """It returns to behind the use, and all else is as ever."""
    address, mutant = put_in(code, MOVED[number]), tmp_path / "mutant"
    write_moved(code, address, mutant, one_in_four=False)
    assert [printed(mutant, number), printed(mutant, 1 - number)] == [BEFORE[number], AS_EVER[1 - number]]
    assert use_before(code, address).address < address


@pytest.mark.parametrize("number", [0, 1], ids=MOVED)
def test_sometimes_it_is_made_where_it_was(code: Code, number: int, tmp_path: Path) -> None:
    write_moved(code, put_in(code, MOVED[number]), tmp_path / "mutant", one_in_four=True)
    assert {printed(tmp_path / "mutant", number) for _ in range(200)} == {BEFORE[number], AS_EVER[number]}


@pytest.mark.parametrize("function", ["returned_by_it", "maybe"])
def test_what_is_not_known_or_made_before_is_left_where_it_is(code: Code, function: str) -> None:
    with pytest.raises(NoRoom):
        use_before(code, put_in(code, function))


CALL = 0x100, b"\xe8\0\0\0\0", "call 900 <use>"
LOAD = 0x105, b"\x48\x8b\x7b\x18", "mov    0x18(%rbx),%rdi"


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ([(0x105, b"\x48\x89\xc7", "mov    %rax,%rdi")], "what the call before returned"),
        ([(0x105, b"\x48\x89\x43\x18", "mov    %rax,0x18(%rbx)"), LOAD], "stored before"),
        ([(0x105, b"\x48\x8b\x7c\x24\x08", "mov    0x8(%rsp),%rdi")], "what the call before returned"),
        ([(0x105, b"\x48\x83\xc7\x08", "add    $0x8,%rdi")], "computed at 0x105"),
        ([], "what the call before returned"),
        ([LOAD], None),
    ],
)  # fmt: skip
def test_what_a_put_is_given_must_be_known_before_the_use(
    between: list[tuple[int, bytes, str]], said: str | None
) -> None:
    before = [Instruction(*one) for one in (CALL, *between)]
    program = SimpleNamespace(puts={"put": "thing"})
    code = Code(
        program, SimpleNamespace(), {0x110: "put"}, {"caller": 0x80}, {}, {0x110: before}, frozenset(), frozenset()
    )
    if said is None:
        assert use_before(code, 0x110).address == 0x100
    else:
        with pytest.raises(NoRoom, match=said):
            use_before(code, 0x110)
