/* Counted objects whose memory goes while they are counted: freed_counters CASE. */
#define _GNU_SOURCE
#include "../../../examples/refleak.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct thing {
	long rest[20];
	int refs;
};

struct outer {
	char head[500];
	struct thing thing;
};

static __attribute__((noinline)) void create(struct thing *thing)
{
	thing->refs = 1;
	refcnt__init(thing, refs, 1);
}

static __attribute__((noinline)) void use(struct thing *thing)
{
	refcnt__get(thing, refs);
}

static __attribute__((noinline)) void drop_block(void *block)
{
	free(block);
}

static char arena[4096];
static size_t used;

__attribute__((noipa)) void *pool_alloc(size_t size)
{
	used += (size + 15) & ~15UL;
	return arena + used - ((size + 15) & ~15UL);
}

__attribute__((noipa)) void pool_free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

__attribute__((noipa)) void *pool_move(void *block, size_t size)
{
	return memcpy(pool_alloc(size), block, sizeof(struct thing));
}

#define PAGE 4096UL

static __attribute__((noinline)) char *map_pages(size_t pages)
{
	return mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static __attribute__((noinline)) void drop_pages(void *start, size_t pages)
{
	munmap(start, pages * PAGE);
}

static __attribute__((noinline)) void replace_page(void *start, int flags, int fd)
{
	mmap(start, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd, 0);
}

static struct thing fixed;
static struct thing *volatile kept;

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	struct thing *thing;

	if (!strcmp(what, "alone") || !strcmp(what, "used")) {
		thing = malloc(sizeof(*thing));
		create(thing);
		if (*what == 'u')
			use(thing);
		drop_block(thing);
	} else if (!strcmp(what, "embedded")) {
		struct outer *outer = malloc(sizeof(*outer));

		create(&outer->thing);
		use(&outer->thing);
		drop_block(outer);
	} else if (!strcmp(what, "static")) {
		create(&fixed);
		use(&fixed);
	} else if (!strcmp(what, "pool")) {
		thing = pool_alloc(sizeof(*thing));
		create(thing);
		use(thing);
		pool_free(thing);
	} else if (!strcmp(what, "pool-moved")) {
		thing = pool_alloc(sizeof(*thing));
		create(thing);
		use(thing);
		kept = pool_move(thing, 1000);
	} else if (!strncmp(what, "unmapped", 8)) {
		char *pages = map_pages(7);

		thing = (struct thing *)(pages + 3 * PAGE);
		create(thing);
		use(thing);
		if (!strcmp(what, "unmapped-part"))
			drop_pages(pages + 2 * PAGE, 3);
		else if (!strcmp(what, "unmapped-beside"))
			drop_pages(pages + 4 * PAGE, 3);
		else if (!strcmp(what, "unmapped-in-vain"))
			drop_pages(pages + 1, 6);
		else
			drop_pages(pages, 7);
	} else if (!strncmp(what, "replaced", 8)) {
		int fd = memfd_create("pages", 0);
		char *pages;

		ftruncate(fd, 2 * PAGE);
		pages = strcmp(what, "replaced-shared") ? map_pages(2) :
			mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		thing = (struct thing *)pages;
		create(thing);
		use(thing);
		if (!strcmp(what, "replaced-shared"))
			replace_page(pages, MAP_SHARED, fd); /* the same bytes */
		else if (!strcmp(what, "replaced-beside"))
			replace_page(pages + PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		else
			replace_page(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	} else if (!strcmp(what, "remapped")) {
		char *pages = map_pages(2);

		thing = (struct thing *)pages;
		create(thing);
		use(thing);
		mremap(pages, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(2));
	} else if (!strcmp(what, "moved")) {
		thing = malloc(sizeof(*thing));
		malloc(100);
		create(thing);
		use(thing);
		kept = realloc(thing, 100000);
	} else if (!strcmp(what, "put")) {
		thing = malloc(sizeof(*thing));
		create(thing);
		if (refcnt__put(thing, refs))
			drop_block(thing);
	}
	return 0;
}
