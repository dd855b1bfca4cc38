"""Programs that free blocks through pointers to functions: how the pointer is held, by who is called, by maker.

All are functions of one C++ source. Each bad one has one mismatched free, and its twin none. Half of them, by a hash of
their name, are never looked at while refleak is worked on: they only count.

`python -m pointer_programs` in this folder, as root, builds them in all ways, or in those that it is given, and prints
what refleak and memcheck tell of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from peers import SOURCE, told_by_memcheck

CHECKOUT = Path(__file__).parents[3]
MAKERS = {"malloc": "malloc(101)", "strdup": 'strdup("some text")', "new": "::operator new(103)",
          "new[]": "new char[107]", "table": "by_table.make(109)"}  # fmt: skip
FREES = {
    "free": "free", "delete": "drop_plain", "delete[]": "drop_array", "jump to free": "jump_to_free",
    "jump to delete": "jump_to_delete", "call of free": "call_of_free", "call of delete": "call_of_delete",
}  # fmt: skip
"""Who is called through the pointer."""
FLOWS = {
    "argument": "apply(FREE, BLOCK);",
    "unique_ptr": "std::unique_ptr<void, Free> held(BLOCK, FREE);",
    "shared_ptr": "std::shared_ptr<void> held(BLOCK, FREE);",
    "function": "std::function<void(void *)> held = FREE; held(BLOCK);",
    "lambda": "Free held = FREE; auto call = [held](void *block) { held(block); asm volatile(\"\"); }; call(BLOCK);",
    "for_each": "std::vector<void *> held{BLOCK}; std::for_each(held.begin(), held.end(), FREE);",
    "struct": "Box held = {BLOCK, FREE}; empty(&held);",
    "table": "Table held = {malloc, FREE}; end(&held, BLOCK);",
    "const table": "static const Table held = {malloc, FREE}; end(&held, BLOCK);",
    "global": "global = FREE; end_by_global(BLOCK);",
    "array": "static Free held[] = {nullptr, FREE}; at(held, 1, BLOCK);",
    "swapped": "swapped = {nullptr, FREE}; end_swapped(&swapped, BLOCK);",
    "swapped by register": "swapped = {nullptr, FREE}; end_swapped_by_register(&swapped, BLOCK);",
    "virtual": "Base *held = new Derived<FREE>; end_virtually(held, BLOCK); delete held;",
}
"""How the pointer is held; each statement frees a block."""
# Operators of the same code are one for -fipa-icf: it makes one function of two that call them, and takes either call.
# The other two make one of two ways through a function, where both end in `free`: an operator's, inlined, and its own.
UNFOLDED = ["-fno-ipa-icf", "-fno-tree-tail-merge", "-fno-crossjumping"]
_OWN = (("", []), (" own", ["-DOWN"]), (" own unfolded", ["-DOWN", *UNFOLDED]))
BUILDS = {
    f"{level} {binding} {position}{own}": [*flags, *more, *place, *own_flags]
    for (level, flags), (binding, more), (position, place), (own, own_flags) in product(
        (("O0", ["-O0"]), ("O2", ["-O2"])),
        (("lazy", ["-Wl,-z,lazy"]), ("now", ["-Wl,-z,now"])),
        (("PIE", ["-pie", "-fPIE"]), ("fixed", ["-no-pie", "-fno-pie"])),
        _OWN,
    )
}
_START = r"""
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#define NOINLINE __attribute__((noinline))
#define KEEP asm volatile("" : : : "memory")
using Free = void (*)(void *);
struct Table { void *(*make)(size_t); Free drop; };
struct Box { void *block; Free drop; };
struct Base { virtual void end(void *) = 0; virtual ~Base() {} };
template <Free drop> struct Derived : Base { NOINLINE void end(void *block) override { drop(block); } };
#ifdef OWN
NOINLINE void *operator new(size_t size) { return malloc(size); }
NOINLINE void *operator new[](size_t size) { return malloc(size); }
NOINLINE void operator delete(void *block) noexcept { free(block); }
NOINLINE void operator delete[](void *block) noexcept { free(block); }
NOINLINE void operator delete(void *block, size_t) noexcept { free(block); }
NOINLINE void operator delete[](void *block, size_t) noexcept { free(block); }
#endif
static constexpr Free drop_plain = ::operator delete, drop_array = ::operator delete[];
NOINLINE void jump_to_free(void *block) { free(block); }
NOINLINE void jump_to_delete(void *block) { ::operator delete(block); }
NOINLINE void call_of_free(void *block) { free(block); KEEP; }
NOINLINE void call_of_delete(void *block) { ::operator delete(block); KEEP; }
static Table by_table = {malloc, free}, swapped;
static Free global, others[] = {free, drop_plain, jump_to_delete, jump_to_free};
static Table *volatile table = &by_table;
NOINLINE void apply(Free drop, void *block) { drop(block); KEEP; }
NOINLINE void empty(Box *box) { box->drop(box->block); box->block = nullptr; KEEP; }
NOINLINE void end(const Table *table, void *block) { table->drop(block); KEEP; }
NOINLINE void end_by_global(void *block) { global(block); KEEP; }
NOINLINE void at(Free *frees, int which, void *block) { frees[which](block); KEEP; }
NOINLINE void end_virtually(Base *base, void *block) { base->end(block); KEEP; }
/* A function that is another one when it has been called: what was called no longer stands there. */
static Free before;
NOINLINE void is_another_then(void *block)
{
	Free drop = before;

	swapped.drop = drop == free || drop == jump_to_free || drop == call_of_free ? drop_plain : jump_to_free;
	drop(block);
}
NOINLINE void end_swapped(Table *table, void *block)
{
	before = table->drop;
	table->drop = is_another_then;
	table->drop(block);
	KEEP;
	table->make = nullptr;
}
NOINLINE void end_swapped_by_register(Table *table, void *block)
{
	before = table->drop;
	table->drop = is_another_then;
	Free drop = table->drop;
	asm("" : "+r"(table), "+a"(drop));
	drop(block);
	KEEP;
	table->make = nullptr;
}
""".splitlines()
_MAIN = r"""
static bool begins(bool apart)
{
	if (!apart || !fork())
		return true;
	wait(nullptr);
	return false;
}
static void end(bool apart) { if (apart) _exit(0); }
int main(int, char **arguments)
{
	bool apart = !strcmp(arguments[1], "apart"), bad = !strcmp(arguments[2], "bad");
""".splitlines()
_WRONG = {"malloc": False, "strdup": False, "table": False, "new": True, "new[]": True}
"""Whether C's functions are wrong for it."""


@dataclass(frozen=True)
class PointerProgram:
    flow: str
    free: str
    maker: str
    line: int
    """Of the block's birth."""

    @property
    def name(self) -> str:
        return f"{self.flow}/{self.free}/{self.maker}"

    @property
    def is_bad(self) -> bool:
        if self.maker.startswith("new") and "free" not in self.free:
            return ("[]" in self.maker) != ("[]" in self.free)
        return ("free" in self.free) == _WRONG[self.maker]

    @property
    def is_scored_only(self) -> bool:
        return bool(sha256(self.name.encode()).digest()[0] & 1)


def generate() -> tuple[str, list[PointerProgram]]:
    """Return the C++ source and its programs.

    `PROGRAM together bad` runs the bad ones, `PROGRAM together good` the others; `apart`: each in a process of its own.
    """
    lines, programs, calls = list(_START), [], []
    for number, (flow, free, maker) in enumerate(product(FLOWS, FREES, MAKERS)):
        lines += [f"NOINLINE static void program_{number}()", "{", f"\tvoid *block = {MAKERS[maker]};"]
        program = PointerProgram(flow, free, maker, len(lines))
        lines += [f"\t{FLOWS[flow].replace('FREE', FREES[free]).replace('BLOCK', 'block')}", "}"]
        programs.append(program)
        calls.append(f"\tif (bad == {int(program.is_bad)} && begins(apart)) {{ program_{number}(); end(apart); }}")
    lines += [*_MAIN, *calls, "}"]
    return "\n".join(lines) + "\n", programs


def build(folder: Path, names: Sequence[str]) -> None:
    """Make a program of each of these builds, called by its name with "-" for spaces."""
    (folder / SOURCE).write_text(generate()[0])
    for name in names:
        command = ["g++", "-std=c++17", "-g", "-w", *BUILDS[name], "-o", name.replace(" ", "-"), SOURCE]
        subprocess.run(command, cwd=folder, check=True, timeout=300)


def told_of(report: Mapping[str, Any]) -> Mapping[int, str]:
    """Return the kinds of a report's errors by the line of the block's birth; those of operators do not count."""
    births = ((error["kind"], _line(error["created_at"] or ())) for error in report["errors"])
    return {line: kind for kind, line in births}


def _line(stack: Iterable[Mapping[str, Any]]) -> int:
    return next((frame["line"] for frame in stack if (frame["function"] or "").startswith("program_")), 0)


def _traced(program: Path, twin: str) -> Mapping[int, str]:
    report = program.with_name("report.json")
    command = [CHECKOUT / "refleak", "--user", "root", "--heap-only", "-o", report, "--exec", program, "together", twin]
    subprocess.run(command, capture_output=True, timeout=600, check=False)
    found = json.loads(report.read_text())
    if not found["complete"]:
        print(program.name, found["lost"], file=sys.stderr)
    return told_of(found)


def _by_memcheck(program: Path, twin: str) -> Mapping[int, str]:
    """In one process memcheck tells errors of the same four innermost calls once."""
    told = told_by_memcheck(program, "apart", twin, program.parent)
    return {birth: kind for kind, _, birth in told}


def main(ways: Sequence[str]) -> None:
    programs = generate()[1]
    print("| build | half | bad | refleak | memcheck | good | told of |\n|---|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, ways)
        for way in ways:
            program = folder / way.replace(" ", "-")
            ours, theirs, false = _traced(program, "bad"), _by_memcheck(program, "bad"), _traced(program, "good")
            for held_back in (False, True):
                half = [one for one in programs if one.is_scored_only == held_back]
                bad, good = [[one for one in half if one.is_bad == is_bad] for is_bad in (True, False)]
                counts = [sum(found.get(one.line) == "mismatched-free" for one in bad) for found in (ours, theirs)]
                wrong = sum(one.line in false for one in good)
                cells = (way, "held back" if held_back else "looked at", len(bad), *counts, len(good), wrong)
                print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(BUILDS))
