/* An allocator that carves blocks out of chunks of malloc, and a wrapper around malloc. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noipa))

static char *chunk;
static size_t used;

NOINLINE void *pool_alloc(size_t size)
{
	void *p;

	if (!chunk)
		chunk = malloc(4099);
	p = chunk + used;
	used += (size + 15) & ~15;
	return p;
}

NOINLINE void *pool_calloc(size_t count, size_t size)
{
	return pool_alloc(count * size);
}

NOINLINE void *pool_realloc(void *p, size_t size)
{
	return p && size <= 1000 ? pool_alloc(size) : NULL;
}

NOINLINE int pool_get(void **out, size_t size)
{
	if (size > 1000)
		return -1;
	*out = pool_alloc(size);
	return 0;
}

NOINLINE void pool_free(void *p)
{
	__asm__ volatile("" : : "r"(p));
}

NOINLINE void *xmalloc(size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	return p;
}

int main(void)
{
	void *p;

	for (int i = 0; i < 7; i++) {
		p = pool_alloc(13);
		if (i < 5)
			pool_free(p);
	}
	pool_calloc(3, 11);
	pool_realloc(pool_alloc(17), 19);
	pool_realloc(pool_alloc(23), 2000);
	pool_get(&p, 29);
	pool_get(&p, 3000);
	for (int i = 0; i < 3; i++)
		xmalloc(77);
	free(xmalloc(5));
	return 0;
}
