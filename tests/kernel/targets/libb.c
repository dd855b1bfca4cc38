/* Leaves 17 blocks when it is loaded. As large as liba.c, so that it fits the same hole. */
#include "target.h"

NOINLINE void leak_in_b(void)
{
	for (int i = 0; i < 17; i++)
		kept = malloc(97);
}

static __attribute__((__constructor__)) void construct_b(void)
{
	leak_in_b();
}
