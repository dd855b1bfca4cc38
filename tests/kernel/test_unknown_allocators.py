"""Allocators whose names nobody knows, in libraries that a program's loader finds before the C library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import REFLEAK, LiveTarget, Refleak
from traced_report import Run, callers

HEADED = """
#include <stddef.h>
#include <string.h>
void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t size) { char *p = __libc_malloc(size + 32); return p ? p + 32 : p; }
void free(void *p) { if (p) __libc_free((char *)p - 32); }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void *realloc(void *p, size_t size)
{
	char *made = __libc_realloc(p ? (char *)p - 32 : p, size + 32);
	return made ? made + 32 : made;
}
"""
"""What it hands out begins inside of a block of libc's."""
PLUGIN = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
	void *plugin = dlopen(arguments[1], RTLD_NOW);
	void (*run)(void) = dlsym(plugin, "run");
	run();
	return 0;
}
"""
OWN_AFFAIR = """
#include <stddef.h>
static char pool[1 << 16], *at = pool;
void *malloc(size_t size) { at += (size + 15) & -16; return at - ((size + 15) & -16); }
void free(void *p) { (void)p; }
void *volatile kept;
__attribute__((noinline)) void run(void) { for (int i = 0; i < 5; i++) kept = malloc(211); }
"""
SANITIZED = """
#include <stdlib.h>
#include <sys/mman.h>
void *volatile kept;
__attribute__((noinline)) void map_it(void) { kept = mmap(0, 3 << 12, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(void) { kept = malloc(77); map_it(); kept = 0; return 0; }
"""


def built(path: Path, source: str, *options: str) -> Path:
    text = path.with_suffix(".c")
    text.write_text(source)
    subprocess.run(["gcc", "-w", "-g", "-O1", "-fno-builtin", "-o", path, text, *options], check=True, timeout=100)
    return path


def kept(run: Run) -> list[tuple[int, int]]:
    """Return how many blocks and bytes are left of those that come straight from malloc, and of libpool.so's."""
    found = (run.below(name) for name in ("leak_direct", "leak_through_pool"))
    return [(leak["count"], leak["bytes"]) for [leak] in found]


def library(path: Path, source: str, *options: str) -> Path:
    return built(path, source, "-shared", "-fPIC", *options)


@pytest.mark.parametrize("by_env", [False, True])
def test_a_preloaded_one(refleak: Refleak, targets: Path, by_env: bool) -> None:
    """All that it made went unseen, and the report said that nothing was left."""
    variable, program = f"LD_PRELOAD={targets}/libfence.so", str(targets / "nested")
    by_shell = ("/bin/sh", "-c", f"export {variable}; exec {program}")
    run = refleak(target=("/usr/bin/env", variable, program) if by_env else by_shell)
    run.check_whole()
    assert kept(run) == [(7, 1043), (11, 1705)]


def test_one_that_a_program_is_linked_with(refleak: Refleak, targets: Path, tmp_path: Path) -> None:
    source = (Path(__file__).parent / "targets/nested.c").read_text()
    program = built(
        tmp_path / "linked", source, f"-I{Path(__file__).parent}/targets", f"-L{targets}", "-lpool",
        "-Wl,--no-as-needed", "-lfence", f"-Wl,-rpath,{targets}",
    )  # fmt: skip
    run = refleak(target=(program,))
    run.check_whole()
    assert kept(run) == [(7, 1043), (11, 1705)]
    assert run.blocks == (11 + 5 + 7 + 2 * 3, 5 + 2 * 3, 18, 2748)


def test_one_that_begins_its_blocks_inside_of_libcs(refleak: Refleak, tmp_path: Path, targets: Path) -> None:
    """They were called possibly lost, since only their inside was pointed at."""
    preloaded = library(tmp_path / "libheaded.so", HEADED)
    run = refleak(
        "--reachability", "auto", "--show", "reachable",
        target=("/usr/bin/env", f"LD_PRELOAD={preloaded}", str(targets / "nested")),
    )  # fmt: skip
    reach = {leak["reachability"] for leak in run.below("main")}
    assert reach <= {"lost", "reachable"}
    assert kept(run)[0] == (7, 1043)


def test_it_is_listed(targets: Path, live_target: LiveTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(targets / "libfence.so"))
    with live_target("on_signal") as process:
        monkeypatch.delenv("LD_PRELOAD")
        command = [REFLEAK, "probes", "-p", str(process.pid)]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    [part] = [part for part in listed.stdout.split("\n\n") if part.startswith(str(targets / "libfence.so"))]
    assert {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign"} <= set(part.split())


def test_that_of_a_plug_in_is_its_own_affair(refleak: Refleak, tmp_path: Path) -> None:
    """It calls libc's, which the loader finds first, unless it is bound to its own."""
    plugin = library(tmp_path / "plugin.so", OWN_AFFAIR)
    own = library(tmp_path / "own.so", OWN_AFFAIR, "-Wl,-Bsymbolic")
    program = built(tmp_path / "program", PLUGIN)
    run = refleak(target=(program, plugin))
    assert [(leak["count"], leak["bytes"]) for leak in run.below("run")] == [(5, 5 * 211)]
    assert {callers(leak)[0]["function"] for leak in run.below("run")} == {"run"}
    assert refleak(target=(program, own)).below("run") == []


def test_a_sanitizers_heap_was_not_seen(refleak: Refleak, tmp_path: Path) -> None:
    """It was not said, and its own mappings were called leaked; each end took four seconds, and 900 MiB of page tables:
    one for each 64 MiB of its terabytes."""
    program = built(tmp_path / "sanitized", SANITIZED, "-fsanitize=address")
    run = refleak(
        "--reachability", "auto", target=(program,), environment=(("ASAN_OPTIONS", "detect_leaks=0"),)
    )
    assert "not all of the heap was seen" in " ".join(run.report["doubts"])
    assert [(leak["kind"], leak["bytes"]) for leak in run.leaks] == [("mapping", 3 << 12)]
