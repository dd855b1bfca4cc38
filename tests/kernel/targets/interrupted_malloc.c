/*
 * A signal comes in the midst of malloc, for certain: seccomp turns malloc's own mmap of one size into SIGSYS.
 * `interrupted_malloc makes`: its handler makes a block where one was freed before; both are freed later.
 * `interrupted_malloc hides`: the second time the handler has malloc return past its return probe, as one that the kernel
 * missed. Its block is where one was freed before, and is freed.
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BIG 0x1234000UL

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

static void trap_big_mmap(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BIG + PAGE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT(filter), filter };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		fail("seccomp is not available");
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
	void *first, *second;

	if (argc != 2 || !(is(argv[1], "makes") || is(argv[1], "hides")))
		fail("usage: interrupted_malloc makes|hides");
	hides = is(argv[1], "hides");
	drop(make());
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
