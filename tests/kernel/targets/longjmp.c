/*
 * Calls that never return. `longjmp malloc`: a signal handler leaves malloc by siglongjmp, 7 times, then 11 blocks
 * are left. The signal comes for certain: seccomp turns malloc's own mmap of one size into SIGSYS.
 * `longjmp qsort`: a comparison leaves qsort at its 5th call, having allocated a block each time.
 */
#define _GNU_SOURCE
#include "big_mmap.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;
static volatile int comparisons;

static void leave(int number)
{
	siglongjmp(back, number);
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
		signal(SIGSYS, leave);
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
