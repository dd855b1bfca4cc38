"""Allocators that are linked into a program under names of their own: all of their blocks went unseen."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import functions

ARCHIVE = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.a")
FAMILY = (
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "mallocx",
    "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx", "malloc_usable_size", "mallctl",
)  # fmt: skip
SOURCE = """
#include <pthread.h>
#include <stddef.h>
#include <string.h>
void *P(malloc)(size_t), *P(calloc)(size_t, size_t), *P(realloc)(void *, size_t), P(free)(void *);
#ifndef SMALL
void *P(mallocx)(size_t, int), P(sdallocx)(void *, size_t, int);
size_t P(malloc_usable_size)(void *);
#endif
struct node { struct node *next; char pad[40]; } *kept;
void *volatile sink;
#define MAKES(name, ...) __attribute__((noinline)) void name(int i) { sink = __VA_ARGS__; memset(sink, 0, 8); }
MAKES(make_lost, P(malloc)(300000))
MAKES(make_small, P(calloc)(2, 20 + i % 2))
MAKES(make_grown, P(realloc)(P(malloc)(9), 200))
__attribute__((noinline)) void make_kept(void) { struct node *n = P(malloc)(sizeof(*n)); n->next = kept; kept = n; }
static void *work(void *unused)
{
	for (int i = 0; i < 100; i++)
		P(free)(P(malloc)(i));
	make_small(0);
	return unused;
}
int main(int count, char **arguments)
{
	pthread_t thread;

	for (int i = 0; i < 50; i++)
		make_kept();
	for (int i = 0; i < 40; i++)
		make_small(i);
	for (int i = 0; i < 3; i++)
		make_lost(0), make_grown(0);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
#ifndef SMALL
	sink = P(mallocx)(777, 0);
	P(sdallocx)(sink, 777, 0);
#endif
#ifdef ASKS
	if (count > 9)
		return P(malloc_usable_size)(sink);
#endif
	sink = NULL;
	return 0;
}
"""
MIMALLOC = """
#include <stdlib.h>
#define O __attribute__((noinline))
O void *mi_malloc(size_t size) { return malloc(size); }
O void *mi_calloc(size_t count, size_t size) { return calloc(count, size); }
O void *mi_realloc(void *p, size_t size) { return realloc(p, size); }
O void mi_free(void *p) { free(p); }
"""
"""Its names; what stands below does not matter."""
OPERATORS = """
#include <new>
struct Small { char bytes[100]; };
struct alignas(64) Aligned { char bytes[128]; };
void *volatile sink;
#define MAKES(name, what) __attribute__((noinline)) void name() { sink = what; }
MAKES(make_one, new Small)
MAKES(make_some, new Small[3])
MAKES(make_aligned, new Aligned)
int main()
{
	for (int i = 0; i < 50; i++) {
		Small *one = new Small, *some = new Small[2];
		Aligned *aligned = new Aligned;
		void *raw = ::operator new(40);

		sink = one, sink = some, sink = aligned, sink = raw;
		delete one;
		delete[] some;
		delete aligned;
		::operator delete(raw);
	}
	make_one();
	make_some();
	make_aligned();
	sink = nullptr;
}
"""
LOST = {"make_lost": 3, "make_small": 41, "make_grown": 3}


def built(folder: Path, prefix: str, *options: object, more: str = "", libraries: tuple[object, ...] = ()) -> Path:
    source, program = folder / f"{prefix}.c", folder / f"{prefix}program"
    source.write_text(f"#define P(name) {prefix}##name\n{more}{SOURCE}")
    words = ["gcc", "-w", "-g", "-O1", "-fno-builtin", "-pthread", *options, "-o", program, source, *libraries]
    subprocess.run([str(word) for word in words], check=True, timeout=100)
    return program


def with_jemalloc(folder: Path, prefix: str, *options: str) -> Path:
    """Link with Debian's jemalloc, each of whose functions gets the prefix, as `--with-jemalloc-prefix` would do it."""
    return built(folder, prefix, *options, libraries=(jemalloc(folder, prefix), "-lstdc++", "-lm"))


def jemalloc(folder: Path, prefix: str) -> Path:
    archive, renamed = folder / f"{prefix}.a", folder / f"{prefix}names"
    renamed.write_text("".join(f"{name} {prefix}{name}\n" for name in FAMILY))
    subprocess.run(["objcopy", f"--redefine-syms={renamed}", ARCHIVE, archive], check=True, timeout=100)
    return archive


def classes(refleak: Refleak, program: Path) -> tuple[Counter[str], Counter[str], list[str]]:
    """Return what is lost and what is reachable, by its maker, and the notes."""
    run = refleak("--reachability", "auto", target=(program,))
    run.check_whole()
    lost, reachable = Counter[str](), Counter[str]()
    for leak in run.leaks:
        maker = next((name for name in functions(leak["stack"]) if name and name.startswith("make_")), "")
        (reachable if leak["reachability"] == "reachable" else lost)[maker] += leak["count"]
    return lost, reachable, run.report["notes"]


@pytest.mark.parametrize("prefix", ["je_", "_rjem_"])
def test_jemalloc_with_a_prefix(refleak: Refleak, tmp_path: Path, prefix: str) -> None:
    """As in Redis, and in Rust's programs. Its books are in what it maps inside of its own calls, and hold nothing."""
    lost, reachable, _ = classes(refleak, with_jemalloc(tmp_path, prefix))
    assert (lost, reachable) == (LOST, {"make_kept": 50})


def test_one_that_tells_the_program_of_more_room(refleak: Refleak, tmp_path: Path) -> None:
    """What is in no block may be of one then, and the books are taken for the program's; a note says so."""
    lost, reachable, notes = classes(refleak, with_jemalloc(tmp_path, "je_", "-DASKS"))
    assert lost + reachable == Counter(LOST) + Counter(make_kept=50)
    assert any("as the books of jemalloc in je_program are" in note for note in notes) == (lost != LOST)


def test_mimalloc(refleak: Refleak, tmp_path: Path) -> None:
    lost, reachable, _ = classes(refleak, built(tmp_path, "mi_", "-DSMALL", more=MIMALLOC))
    assert (lost, reachable) == (LOST, {"make_kept": 50})


@pytest.mark.parametrize("options", [(), ("-fsized-deallocation",)], ids=["plain", "sized"])
def test_its_own_operators(refleak: Refleak, tmp_path: Path, options: tuple[str, ...]) -> None:
    """They pass over malloc and free: what only one side of is seen would be left for ever."""
    source, program = tmp_path / "operators.cc", tmp_path / "operators"
    source.write_text(OPERATORS)
    words = ["g++", "-w", "-g", "-O0", "-std=c++17", *options, "-o", program, source, jemalloc(tmp_path, "je_"), "-lm"]
    subprocess.run([str(word) for word in words], check=True, timeout=100)
    lost, reachable, notes = classes(refleak, program)
    assert lost + reachable == {"make_one()": 1, "make_some()": 1, "make_aligned()": 1}
    assert [note for note in notes if "not seen to be made" in note] == []
