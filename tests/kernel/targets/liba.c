/* Leaves 13 blocks when it is loaded. As large as libb.c, so that it fits the same hole. */
#include "target.h"

NOINLINE void leak_in_a(void)
{
	for (int i = 0; i < 13; i++)
		kept = malloc(89);
}

static __attribute__((__constructor__)) void construct_a(void)
{
	leak_in_a();
}
