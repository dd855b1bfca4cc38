"""Programs with one error of the heap each, and their correct twins: kind of error, by flow, by allocator.

All are cases of one C++ source. What must be told of each follows from how it was made: the kind, and the lines of
the offence and of the block's birth. Half of them, by a hash of their name, are never looked at while refleak is
worked on: they only count.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import product

DOUBLE, INVALID, MISMATCHED = KINDS = ("double-free", "invalid-free", "mismatched-free")
FLOWS = ("direct", "helper", "struct", "global", "loop", "thread", "child")
ALLOCATORS = {
    "malloc": ("malloc(101)", "free({})", "delete (char *)({})"),
    "calloc": ("calloc(3, 37)", "free({})", "delete[] (char *)({})"),
    "realloc": ("realloc(nullptr, 103)", "free({})", "delete (char *)({})"),
    "strdup": ('strdup("a text of some length")', "free({})", "delete[] (char *)({})"),
    "memalign": ("memalign(64, 107)", "free({})", "delete (char *)({})"),
    "new": ("(void *)new Holder", "delete (Holder *)({})", "free({})"),
    "new[]": ("(void *)new char[109]", "delete[] (char *)({})", "delete (char *)({})"),
}
"""How a block is made, freed, and freed by the wrong function."""
_START = """
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
struct Holder { int number; void *block; };
static void run_thread(void *(*work)(void *), void *block)
{
	pthread_t thread;
	pthread_create(&thread, nullptr, work, block);
	pthread_join(thread, nullptr);
}
""".splitlines()


@dataclass(frozen=True)
class HeapProgram:
    kind: str
    flow: str
    allocator: str
    offence_line: int
    birth_line: int

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.flow}/{self.allocator}"

    @property
    def is_scored_only(self) -> bool:
        return bool(sha256(self.name.encode()).digest()[0] & 1)


class _Source:
    def __init__(self) -> None:
        self.lines = list(_START)
        self.marks: dict[str, int] = {}

    def add(self, text: str, mark: str = "") -> None:
        self.lines.append(text)
        if mark:
            self.marks[mark] = len(self.lines)


def generate() -> tuple[str, list[HeapProgram]]:
    """Return the C++ source and its programs: `PROGRAM NAME bad` runs one, `PROGRAM NAME good` its twin."""
    source, programs = _Source(), []
    for number, (kind, flow, allocator) in enumerate(product(KINDS, FLOWS, ALLOCATORS)):
        source.marks = {}
        _add_program(source, number, kind, flow, allocator)
        programs.append(HeapProgram(kind, flow, allocator, source.marks["offence"], source.marks["birth"]))
    source.add("int main(int, char **arguments) {")
    source.add("\tbool bad = arguments[2] && !strcmp(arguments[2], \"bad\");")
    for number, program in enumerate(programs):
        source.add(f"\tif (!strcmp(arguments[1], \"{program.name}\")) program_{number}(bad);")
    source.add("\treturn 0; }")
    return "\n".join(source.lines) + "\n", programs


def _add_program(source: _Source, number: int, kind: str, flow: str, allocator: str) -> None:
    make, free, wrong = ALLOCATORS[allocator]
    held = {"struct": "holder.block", "global": f"kept_{number}"}.get(flow, "block")
    if flow == "global":
        source.add(f"static void *kept_{number};")
    if flow == "helper":
        source.add(f"NOINLINE static void *make_{number}()")
        source.add("{")
        source.add(f"\treturn {make};", "birth")
        source.add("}")
    if flow in ("helper", "thread"):
        source.add(f"NOINLINE static void *end_{number}(void *block)")
        source.add("{")
        _add_offence(source, kind, free, wrong, "block", "true")
        source.add("\treturn nullptr;")
        source.add("}")
    source.add(f"NOINLINE static void program_{number}(bool bad)")
    source.add("{")
    if flow == "child":
        source.add("\tif (fork()) { wait(nullptr); return; }")
    if flow == "struct":
        source.add("\tHolder holder = { 7, nullptr };")
    source.add(f"\tfor (int turn = 0; turn < {3 if flow == 'loop' else 1}; turn++) {{")
    declared = "void *" if held == "block" else ""
    if flow == "helper":
        source.add(f"\tvoid *block = make_{number}();")
    else:
        source.add(f"\t{declared}{held} = {make};", "birth")
    when = "bad && turn == 1" if flow == "loop" else "bad"
    if kind == DOUBLE:
        source.add(f"\tif ({when}) {free.format(held)};")
    if flow in ("helper", "thread"):
        call = f"end_{number}({held})" if flow == "helper" else f"run_thread(end_{number}, {held})"
        source.add(f"\tif ({when}) {call}; else {free.format(held)};")
    else:
        _add_offence(source, kind, free, wrong, held, when)
    source.add("\t}")
    if flow == "child":
        source.add("\t_exit(0);")
    source.add("}")


def _add_offence(source: _Source, kind: str, free: str, wrong: str, held: str, when: str) -> None:
    if kind == DOUBLE:
        source.add(f"\t{free.format(held)};", "offence")
    elif kind == INVALID:
        inner = f"(char *){held} + 8"
        source.add(f"\tif ({when}) {free.format(inner)};", "offence")
        source.add(f"\tif (!({when})) {free.format(held)};")
    else:
        source.add(f"\tif ({when}) {wrong.format(held)};", "offence")
        source.add(f"\tif (!({when})) {free.format(held)};")
