/*
 * Three periods, each begun by a byte of stdin after a line on stdout: 5 blocks and 2 objects that stay (steady); then
 * 11 blocks of which 4 go, and one of the objects ends (second); then the other 7 and 3 of the first go (third).
 */
#include "refleak.h"
#include "target.h"

struct thing {
	int refs;
};

static void *first[5], *second[11];
static struct thing things[2];

static NOINLINE void make_first(void)
{
	for (volatile int i = 0; i < 5; i++)
		first[i] = malloc(41);
	for (volatile int i = 0; i < 2; i++)
		refcnt__init_as(&things[i], refs, 1, "thing");
}

static NOINLINE void make_second(void)
{
	for (volatile int i = 0; i < 11; i++)
		second[i] = malloc(59);
	for (int i = 0; i < 4; i++)
		free(second[i]);
	__refcnt__put(&things[0].refs, &things[0], "thing");
}

static NOINLINE void drop(void)
{
	for (int i = 4; i < 11; i++)
		free(second[i]);
	for (int i = 0; i < 3; i++)
		free(first[i]);
	kept = malloc(61);
}

int main(void)
{
	make_first();
	ready();
	make_second();
	ready();
	drop();
	ready();
	return 0;
}
