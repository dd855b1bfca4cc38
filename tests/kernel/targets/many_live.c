/* many_live [N]: N blocks of 16 bytes, 2,000,000 by default. */
#include "target.h"

static NOINLINE void leak_many(long count)
{
	for (long i = 0; i < count; i++)
		kept = malloc(16);
}

int main(int argc, char **argv)
{
	leak_many(argc == 2 ? atol(argv[1]) : 2000000);
	return 0;
}
