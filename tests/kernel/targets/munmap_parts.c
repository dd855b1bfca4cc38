/* Mappings that are unmapped in part, covered or moved. */
#define _GNU_SOURCE
#include "target.h"
#include <sys/mman.h>
#include <sys/wait.h>

static NOINLINE char *map_pages(void *at, size_t pages, int flags)
{
	char *p = mmap(at, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap failed");
	return p;
}

static NOINLINE void map_over(char *at, size_t pages)
{
	if (mmap(at, pages * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		fail("mmap failed");
}

static NOINLINE void unmap_pages(char *at, size_t pages)
{
	if (munmap(at, pages * PAGE) != 0)
		fail("munmap failed");
}

static NOINLINE char *remap_pages(char *at, size_t old, size_t new, int flags, char *to)
{
	char *p = mremap(at, old * PAGE, new * PAGE, MREMAP_MAYMOVE | flags, to);

	if (p == MAP_FAILED)
		fail("mremap failed");
	return p;
}

/* Return the start of `pages` that nothing occupies. */
static char *hole(size_t pages)
{
	char *p = map_pages(NULL, pages, 0);

	unmap_pages(p, pages);
	return p;
}

static void several(void)
{
	char *at = hole(9);

	for (int i = 0; i < 3; i++)
		map_pages(at + 3 * i * PAGE, 3, MAP_FIXED);
	unmap_pages(at + 2 * PAGE, 5);
}

static void move(void)
{
	char *at = hole(9);

	remap_pages(map_pages(at, 3, MAP_FIXED), 3, 3, MREMAP_FIXED, at + 6 * PAGE);
}

static char *volatile reserved[2];

/* Reserves 7 pages and 13, and maps over 2 in the midst of the first and over the first 3 of the second. */
static NOINLINE void reserve(char *volatile *keep)
{
	keep[0] = map_pages(NULL, 7, 0);
	map_over(keep[0] + 2 * PAGE, 2);
	keep[1] = map_pages(NULL, 13, 0);
	map_over(keep[1], 3);
}

static void forget(void)
{
	reserved[0] = reserved[1] = NULL;
}

/* The child unmaps a part of its copy, and keeps the rest and a mapping of its own to the end. */
static void in_a_child(void)
{
	char *p = map_pages(NULL, 7, 0);
	pid_t child = fork();
	int status;

	if (child == 0) {
		unmap_pages(p, 2);
		map_over(map_pages(NULL, 3, 0), 3);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	unmap_pages(p + 6 * PAGE, 1);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (is(what, "start"))
		unmap_pages(map_pages(NULL, 7, 0), 2);
	else if (is(what, "middle"))
		unmap_pages(map_pages(NULL, 7, 0) + 3 * PAGE, 2);
	else if (is(what, "end"))
		unmap_pages(map_pages(NULL, 7, 0) + 5 * PAGE, 2);
	else if (is(what, "several"))
		several();
	else if (is(what, "fixed"))
		map_over(map_pages(NULL, 7, 0) + 2 * PAGE, 2);
	else if (is(what, "move"))
		move();
	else if (is(what, "grow"))
		remap_pages(map_pages(NULL, 3, 0), 3, 5, 0, NULL);
	else if (is(what, "shrink"))
		remap_pages(map_pages(NULL, 7, 0), 7, 5, 0, NULL);
	else if (is(what, "reserved"))
		reserve(reserved);
	else if (is(what, "forgotten")) {
		reserve(reserved);
		forget();
	} else if (is(what, "fork"))
		in_a_child();
	else
		fail("usage: munmap_parts start|middle|end|several|fixed|move|grow|shrink|reserved|forgotten|fork");
	return 0;
}
