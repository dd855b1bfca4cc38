/* A pool in a block of malloc, of which a spec may say that it is a root, or hides pointers.
 *
 * numbered: nothing points at the pool, whose blocks have numbers; they point at what malloc made.
 * hidden: a global points at the pool, whose blocks hold what malloc made by pointers that are turned over.
 * adrift: the same, but nothing points at the pool.
 * second: a global points at the pool's second block alone, which is not where the pool begins.
 * Each loses one block more. */
#include <stdint.h>

#include "leftovers.h"

#define COUNT 3

struct node {
	char room[48];
};

MAKER(make_held)
MAKER(make_lost)

static char *volatile pool;
static volatile size_t used;
static volatile uintptr_t turned_over;

__attribute__((noinline, noipa)) void *pool_alloc(size_t size)
{
	char *p = pool + used;

	used += (size + 15) & ~(size_t)15;
	return p;
}

static __attribute__((noinline)) void fill(int hides)
{
	pool = malloc(4099);
	for (int i = 0; i < COUNT; i++) {
		uintptr_t *block = pool_alloc(32);

		block[0] = block[2] = block[3] = 0;
		block[1] = (uintptr_t)make_held();
		if (hides)
			block[1] = ~block[1];
	}
	turned_over = ~(uintptr_t)pool;
	make_lost();
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "";

	fill(strcmp(how, "hidden") == 0 || strcmp(how, "adrift") == 0);
	if (strcmp(how, "second") == 0)
		pool += 32;
	else if (strcmp(how, "hidden") != 0)
		pool = NULL;
	wipe();
	clear_registers();
	exit(0);
}
