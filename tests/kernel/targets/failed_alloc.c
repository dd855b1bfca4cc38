/* Allocations that fail: nothing is made. */
#define _GNU_SOURCE
#include "target.h"
#include <sys/mman.h>

static volatile size_t too_much = PTRDIFF_MAX;
static volatile size_t bad_alignment = 3;
static volatile size_t zero;

static NOINLINE void fail_all(void)
{
	void *p = (void *)-1;

	if (malloc(too_much) || calloc(too_much, 3) || realloc(NULL, too_much) || aligned_alloc(64, too_much))
		fail("an allocation did not fail");
	if (posix_memalign(&p, bad_alignment, 101) != EINVAL || p != (void *)-1)
		fail("posix_memalign did not fail");
	if (mmap(NULL, zero, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		fail("mmap did not fail");
	if (munmap((void *)1, PAGE) == 0)
		fail("munmap did not fail");
}

int main(void)
{
	for (int i = 0; i < 7; i++)
		fail_all();
	return 0;
}
