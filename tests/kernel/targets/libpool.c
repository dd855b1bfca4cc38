/* An allocator over malloc: each block has 16 bytes in front. */
#include "target.h"

void *pool_malloc(size_t size);
void pool_free(void *p);

void *pool_malloc(size_t size)
{
	size_t *block = malloc(size + 16);

	if (block == NULL)
		return NULL;
	block[0] = size;
	return block + 2;
}

void pool_free(void *p)
{
	if (p != NULL)
		free((size_t *)p - 2);
}
