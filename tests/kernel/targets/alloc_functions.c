/* Each allocation function: 17 blocks or mappings left by leak_F, 11 released by release_F. */
#define _GNU_SOURCE
#include "target.h"
#include <malloc.h>
#include <sys/mman.h>

static void *map(size_t size)
{
	return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void unmap_one(void *p)
{
	munmap(p, PAGE);
}

static void unmap_three(void *p)
{
	munmap(p, 3 * PAGE);
}

static void *aligned(void)
{
	void *p = NULL;

	return posix_memalign(&p, 64, 101) ? NULL : p;
}

#define CASE(name, allocate, release)				\
	static NOINLINE void leak_##name(void)			\
	{							\
		kept = allocate;				\
	}							\
	static NOINLINE void release_##name(void)		\
	{							\
		void *p = allocate;				\
								\
		kept = p;					\
		release(p);					\
	}

CASE(malloc, malloc(101), free)
CASE(calloc, calloc(13, 7), free)
CASE(realloc, realloc(NULL, 101), free)
CASE(reallocarray, reallocarray(NULL, 13, 7), free)
CASE(posix_memalign, aligned(), free)
CASE(aligned_alloc, aligned_alloc(64, 128), free)
CASE(memalign, memalign(64, 101), free)
CASE(valloc, valloc(101), free)
#ifdef __GLIBC__
CASE(pvalloc, pvalloc(101), free)
#endif
CASE(mmap, map(PAGE), unmap_one)
CASE(mremap, mremap(map(PAGE), PAGE, 3 * PAGE, MREMAP_MAYMOVE), unmap_three)

static const struct {
	const char *name;
	void (*leak)(void);
	void (*release)(void);
} cases[] = {
#define ROW(name) { #name, leak_##name, release_##name }
	ROW(malloc), ROW(calloc), ROW(realloc), ROW(reallocarray), ROW(posix_memalign), ROW(aligned_alloc),
	ROW(memalign), ROW(valloc), ROW(mmap), ROW(mremap),
#ifdef __GLIBC__
	ROW(pvalloc),
#endif
};

int main(int argc, char **argv)
{
	for (size_t c = 0; argc == 2 && c < COUNT(cases); c++) {
		if (!is(argv[1], cases[c].name))
			continue;
		for (int i = 0; i < 11; i++)
			cases[c].release();
		for (int i = 0; i < 17; i++)
			cases[c].leak();
		return 0;
	}
	fail("usage: alloc_functions NAME");
}
