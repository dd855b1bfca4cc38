/* 19 blocks, then a crash: abort or segv. */
#include "target.h"

static NOINLINE void before_crash(void)
{
	for (int i = 0; i < 19; i++)
		kept = malloc(79);
}

int main(int argc, char **argv)
{
	volatile int *volatile nowhere = NULL;

	before_crash();
	if (argc == 2 && is(argv[1], "abort"))
		abort();
	if (argc == 2 && is(argv[1], "segv"))
		*nowhere = 1;
	fail("usage: crash abort|segv");
}
