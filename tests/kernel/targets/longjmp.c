/*
 * Calls that never return. `longjmp malloc`: a signal handler leaves malloc by siglongjmp, 7 times, then 11 blocks
 * are left. The signal comes for certain: seccomp turns malloc's own mmap of one size into SIGSYS.
 * `longjmp qsort`: a comparison leaves qsort at its 5th call, having allocated a block each time.
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BIG 0x1234000UL

static sigjmp_buf back;
static volatile int comparisons;

static void leave(int number)
{
	siglongjmp(back, number);
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

	signal(SIGSYS, leave);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		fail("seccomp is not available");
}

static NOINLINE void interrupted_malloc(void)
{
	kept = malloc(BIG);
	fail("malloc was not interrupted");
}

static NOINLINE void leak_after_longjmp(void)
{
	for (int i = 0; i < 11; i++)
		kept = malloc(113);
}

static NOINLINE int compare_and_leak(const void *a, const void *b)
{
	kept = malloc(127);
	if (++comparisons == 5)
		siglongjmp(back, 1);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void interrupted_qsort(void)
{
	int numbers[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

	qsort(numbers, COUNT(numbers), sizeof(numbers[0]), compare_and_leak);
	fail("qsort was not interrupted");
}

int main(int argc, char **argv)
{
	volatile int interrupted = 0;

	if (argc == 2 && is(argv[1], "malloc")) {
		trap_big_mmap();
		if (sigsetjmp(back, 1) != 0)
			interrupted++;
		if (interrupted < 7)
			interrupted_malloc();
		leak_after_longjmp();
	} else if (argc == 2 && is(argv[1], "qsort")) {
		if (sigsetjmp(back, 1) == 0)
			interrupted_qsort();
	} else
		fail("usage: longjmp malloc|qsort");
	return 0;
}
