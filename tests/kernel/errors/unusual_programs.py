"""Frees in unusual places, and of blocks of unusual makers, each with its correct twin, as those of heap_programs.

Each place (a handler of signals, a destructor of a thread's variable, code behind a `dlclose` ...) has each kind of
error, and so has each maker (`asprintf`, `getline`, a chain of `realloc` ...), freed where it was made. The source is
built as a program, and with LIBRARY defined as a library that the program loads and closes again.
"""

from __future__ import annotations

from itertools import cycle, product

from heap_programs import DOUBLE, INVALID, KINDS, HeapProgram

MAKERS = {
    "malloc": "block = malloc(101);",
    "calloc": "block = calloc(3, 37);",
    "reallocarray": "block = reallocarray(nullptr, 3, 37);",
    "posix_memalign": "if (posix_memalign(&block, 64, 103)) abort();",
    "aligned_alloc": "block = aligned_alloc(64, 128);",
    "valloc": "block = valloc(4099);",
    "strdup": 'block = strdup("a text of some length");',
    "strndup": 'block = strndup("a text of some length", 17);',
    "wcsdup": 'block = wcsdup(L"a text");',
    "asprintf": 'if (asprintf((char **)&block, "%d and %s", 7, "more than that") < 0) abort();',
    "getline": "if (getline((char **)&block, &size, lines) < 0) abort();",
    "getcwd": "block = getcwd(nullptr, 0);",
    "realpath": 'block = realpath("/usr/share", nullptr);',
    "open_memstream": "stream = open_memstream((char **)&block, &size);",
    "scandir": "entries = scandir(\"/\", (struct dirent ***)&block, nullptr, nullptr);",
    "chain": "for (int at = 1; at < 9; at++) block = realloc(block, 40 * at * at);",
    "moved": "block = realloc(block, 30011);",
}
"""How a block is made; all are freed by `free`, and wrongly by `delete`."""
BEFORE = {
    "getline": 'FILE *lines = fmemopen((void *)"a line of some length\\n", 22, "r"); size_t size = 0;',
    "open_memstream": "size_t size = 0; FILE *stream;",
    "scandir": "int entries;",
    "moved": "block = malloc(23); void *behind = malloc(23);",
}
BEHIND = {
    "getline": "fclose(lines);",
    "open_memstream": 'fputs("a text of some length", stream); fclose(stream);',
    "scandir": "while (entries > 0) free((*(void ***)&block)[--entries]);",
    "moved": "free(behind);",
}
PLACES = {
    "thread": "run_thread([](void *given) -> void * { END(given); return nullptr; }, block);",
    "ended-thread": "END(block);",
    "atexit": "kept = block; atexit([] { END(kept); });",
    "signal": "kept = block; signal(SIGUSR1, [](int) { END(kept); }); raise(SIGUSR1);",
    "other-stack": "kept = block; on_other_stack([](int) { END(kept); });",
    "fiber": "kept = block; on_fiber([] { END(kept); });",
    "thread-local": "run_thread([](void *given) -> void * { static thread_local Ender ender; ender.set(END, given); "
                    "return nullptr; }, block);",
    "key": "kept = block; static pthread_key_t key; pthread_key_create(&key, [](void *given) { END(given); }); "
           "run_thread([](void *given) -> void * { pthread_setspecific(key, given); return nullptr; }, block);",
    "static": "static Ender ender; ender.set(END, block);",
    "unwinding": "try { Ender ender; ender.set(END, block); throw 7; } catch (int) { }",
    "longjmp": "kept = block; if (!setjmp(place)) longjmp(place, 1); END(kept);",
    "qsort": "kept = block; int two[] = { 2, 1 }; qsort(two, 2, sizeof(int), [](const void *, const void *) { "
             "if (kept) END(kept); kept = nullptr; return 0; });",
    "cancelled": "kept = block; cancelled([](void *) { END(kept); });",
    "async": "std::async(std::launch::async, [block] { END(block); }).get();",
    "dlclose": "with_library(library, [](void *given) { END(given); }, block);",
    "in-library": "in_library(library, END, block);",
    "inherited": "int child = fork(); if (!child) { END(block); _exit(0); } waitpid(child, nullptr, 0); free(block);",
    "grandchild": "int child = fork(); if (!child) { if (!fork()) { END(block); _exit(0); } wait(nullptr); "
                  "free(block); _exit(0); } waitpid(child, nullptr, 0); free(block);",
}
"""How END comes to be called with `block`, which it frees."""
_START = r"""
#define _GNU_SOURCE 1
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <dirent.h>
#include <dlfcn.h>
#include <future>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
#ifdef LIBRARY
extern "C" void library_calls(void (*end)(void *), void *block) { end(block); }
extern "C" void *library_makes(void *(*make)(void)) { return make(); }
#else
static void *kept;
static bool is_bad;
static jmp_buf place;
struct Ender {
	void (*end)(void *) = nullptr;
	void *block = nullptr;
	void set(void (*given)(void *), void *what) { end = given; block = what; }
	~Ender() { if (end) end(block); }
};
static void run_thread(void *(*work)(void *), void *block)
{
	pthread_t thread;
	pthread_create(&thread, nullptr, work, block);
	pthread_join(thread, nullptr);
}
static void on_other_stack(void (*handler)(int))
{
	static char stack[65536] __attribute__((aligned(16)));
	stack_t other = { stack, 0, sizeof(stack) };
	struct sigaction action = {};
	sigaltstack(&other, nullptr);
	action.sa_handler = handler;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	raise(SIGUSR1);
}
static void on_fiber(void (*work)(void))
{
	static ucontext_t here, there;
	static char stack[262144] __attribute__((aligned(16)));
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, work, 0);
	swapcontext(&here, &there);
}
static void cancelled(void (*work)(void *))
{
	static void (*called)(void *);
	called = work;
	pthread_t thread;
	pthread_create(&thread, nullptr, [](void *) -> void * {
		pthread_cleanup_push(called, nullptr);
		for (;;) pause();
		pthread_cleanup_pop(0);
		return nullptr;
	}, nullptr);
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
}
static void in_library(const char *path, void (*end)(void *), void *block)
{
	void *library = dlopen(path, RTLD_NOW);
	((void (*)(void (*)(void *), void *))dlsym(library, "library_calls"))(end, block);
	dlclose(library);
}
static void with_library(const char *path, void (*end)(void *), void *block)
{
	dlclose(dlopen(path, RTLD_NOW));
	end(block);
}
""".splitlines()


def generate() -> tuple[str, list[HeapProgram]]:
    """Return the source and its programs: `PROGRAM NAME bad LIBRARY` runs one, `PROGRAM NAME good LIBRARY` its twin."""
    lines, programs = list(_START), []
    makers = cycle(MAKERS)
    cases = [(kind, "direct", maker) for kind, maker in product(KINDS, MAKERS)]
    cases += [(kind, place, next(makers)) for kind, place in product(KINDS, PLACES)]
    for number, (kind, place, maker) in enumerate(cases):
        offence, birth = _add(lines, number, kind, place, maker)
        programs.append(HeapProgram(kind, place, maker, offence, birth))
    lines += ["int main(int, char **arguments) {", '\tis_bad = !strcmp(arguments[2], "bad");']
    for number, program in enumerate(programs):
        lines.append(f'\tif (!strcmp(arguments[1], "{program.name}")) program_{number}(arguments[3]);')
    lines += ["\treturn 0; }", "#endif"]
    return "\n".join(lines) + "\n", programs


def _add(lines: list[str], number: int, kind: str, place: str, maker: str) -> tuple[int, int]:
    """Add a program; return the lines of its offence and of its block's birth."""
    lines += [f"NOINLINE static void *make_{number}()", "{", "\tvoid *block = nullptr;", f"\t{BEFORE.get(maker, '')}"]
    lines.append(f"\t{MAKERS[maker]}")
    birth = len(lines)
    lines.append(f"\t{BEHIND.get(maker, '')}")
    if maker == "open_memstream":  # when it is closed, it makes the block as large as it has to be
        birth = len(lines)
    lines += ["\treturn block;", "}"]
    lines += [f"NOINLINE static void end_{number}(void *block)", "{"]
    if kind == DOUBLE:
        lines += ["\tif (is_bad) free(block);", "\tfree(block);"]
        offence = len(lines)
    else:
        wrong = "free((char *)block + 8)" if kind == INVALID else "delete (char *)block"
        lines.append(f"\tif (is_bad) {wrong};")
        offence = len(lines)
        lines.append("\tif (!is_bad) free(block);")
    lines += ["}", f"NOINLINE static void program_{number}(const char *library)", "{"]
    if place == "ended-thread":
        lines.append(f"\trun_thread([](void *) -> void * {{ kept = make_{number}(); return nullptr; }}, nullptr);")
        lines.append("\tvoid *block = kept;")
    else:
        lines.append(f"\tvoid *block = make_{number}();")
    lines.append("\t" + PLACES.get(place, "END(block);").replace("END", f"end_{number}"))
    lines.append("}")
    return offence, birth
