/* Allocators over allocators: 11 blocks of libpool.so stay and 5 go, 7 blocks come straight from malloc. */
#include "target.h"

void *pool_malloc(size_t size);
void pool_free(void *p);

static NOINLINE void *leak_through_pool(void)
{
	void *p = pool_malloc(139);

	kept = p;
	return p;
}

static NOINLINE void leak_direct(void)
{
	kept = malloc(149);
}

static NOINLINE void realloc_direct(void)
{
	kept = realloc(calloc(3, 5), 151);
	free(kept);
}

int main(void)
{
	for (int i = 0; i < 11; i++)
		leak_through_pool();
	for (int i = 0; i < 5; i++)
		pool_free(leak_through_pool());
	for (int i = 0; i < 7; i++)
		leak_direct();
	for (int i = 0; i < 3; i++)
		realloc_direct();
	return 0;
}
