"""C programs whose stacks change at both ends, from a seed: calls, recursion, big and variable frames, tail calls,
setjmp, signals on a stack of their own, coroutines. Each allocates at many places and prints nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator

_HEAD = """\
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define CALL(f) do { state = state * 6364136223846793005ULL + 1; (f); } while (0)
#define PICK(n) ((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 33) % (n)
#define NEVER_INLINE __attribute__((noinline, noclone))

static unsigned long state = 1;
static void *volatile kept;
static jmp_buf back;
static int may_jump;
static ucontext_t outside, inside;

static NEVER_INLINE void make(void)
{
	kept = malloc(1 + PICK(90));
	if (PICK(3))
		free(kept);
	__asm__ volatile("" ::: "memory");
}
"""
_TAIL = """\
static void on_signal(int number)
{
	(void)number;
	f0(2);
}

static void on_coroutine(void)
{
	for (;;) {
		f1(3);
		swapcontext(&inside, &outside);
		make();
	}
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t other = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&other, 0);
	sigaction(SIGUSR1, &action, 0);
	getcontext(&inside);
	inside.uc_stack.ss_sp = malloc(1 << 16);
	inside.uc_stack.ss_size = 1 << 16;
	makecontext(&inside, on_coroutine, 0);
	for (int turn = 0; turn < TURNS; turn++) {
		may_jump = PICK(4) == 0;
		if (setjmp(back) == 0)
			f0(6);
		may_jump = 0;
		if (turn % 7 == 3)
			raise(SIGUSR1);
		if (turn % 5 == 2)
			swapcontext(&outside, &inside);
	}
	return 0;
}
"""
_FUNCTIONS, _TURNS = 24, 60


def program(seed: int) -> str:
    """Return the text of one program; the same for the same seed."""
    chance = random.Random(seed)
    declared = [f"static void f{number}(int depth);" for number in range(_FUNCTIONS)]
    functions = ["\n".join(_function(chance, number)) for number in range(_FUNCTIONS)]
    return "\n\n".join([f"#define TURNS {_TURNS}", _HEAD, "\n".join(declared), *functions, _TAIL])


def _function(chance: random.Random, number: int) -> Iterator[str]:
    yield f"static NEVER_INLINE void f{number}(int depth)"
    yield "{"
    if chance.random() < 0.3:  # more than what is read at once
        yield f"\tchar big[{chance.choice((100, 700, 5000, 20000))}];"
        yield '\t__asm__ volatile("" :: "r"(big) : "memory");'
    if chance.random() < 0.25:
        yield "\tmemset(alloca(8 + PICK(300)), 1, 8);"
    yield "\tmake();"
    yield "\tif (depth <= 0)"
    yield "\t\treturn;"
    if chance.random() < 0.15:
        yield "\tif (may_jump && PICK(4) == 0)"
        yield "\t\tlongjmp(back, 1);"
    for _ in range(chance.randint(1, 3)):
        yield f"\tif (PICK(3))\n\t\tf{chance.randrange(_FUNCTIONS)}(depth - 1);"
        if chance.random() < 0.5:
            yield "\tmake();"
    if chance.random() < 0.3:  # the compiler makes it a jump
        yield f"\treturn f{chance.randrange(_FUNCTIONS)}(depth - 1);"
    yield "}"
