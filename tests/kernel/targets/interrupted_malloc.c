/*
 * A signal comes in the midst of malloc, for certain: seccomp turns malloc's own mmap of one size into SIGSYS.
 * `interrupted_malloc makes`: its handler makes a block where one was freed before; both are freed later.
 * `interrupted_malloc hides`: the second time the handler has malloc return past its return probe, as one that the kernel
 * missed. Its block is where one was freed before, and is freed.
 */
#define _GNU_SOURCE
#include "big_mmap.h"
#include <signal.h>
#include <ucontext.h>

static int hides;
static void *inner;
static volatile int signals;
static void **volatile slot; /* where malloc's return address is, and what it is */
static void *volatile return_address;

static NOINLINE void *make(void)
{
	return malloc(101);
}

static NOINLINE void drop(void *block)
{
	free(block);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)info;
	(void)number;
	if (!hides)
		inner = make();
	else if (signals++)
		*slot = return_address;
	interrupted->uc_mcontext.gregs[REG_RAX] = -ENOMEM; /* malloc takes it from elsewhere */
}

static NOINLINE void *make_big(void)
{
	size_t size = BIG;
	void *block;

	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "subq $256, %%rsp\n\t"
			 "andq $-16, %%rsp\n\t"
			 "leaq -8(%%rsp), %%rax\n\t"
			 "movq %%rax, %[slot]\n\t"
			 "leaq 1f(%%rip), %%rax\n\t"
			 "movq %%rax, %[address]\n\t"
			 "call malloc@PLT\n"
			 "1:\tmovq %%rbx, %%rsp"
			 : "=a"(block), "+D"(size), [slot] "=m"(slot), [address] "=m"(return_address)
			 :
			 : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return block;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	void *first, *second;

	if (argc != 2 || !(is(argv[1], "makes") || is(argv[1], "hides")))
		fail("usage: interrupted_malloc makes|hides");
	hides = is(argv[1], "hides");
	drop(make());
	sigaction(SIGSYS, &action, NULL);
	trap_big_mmap();
	first = make_big();
	drop(first);
	if (!hides) {
		drop(inner);
		return inner ? 0 : 3;
	}
	second = make_big();
	drop(second);
	if (signals != 2 || first != second)
		fail("malloc was not interrupted, or takes another address");
	return 0;
}
