/* Lost blocks into whose last word the books of glibc's malloc point: one below the top of the heap, one before a free
 * chunk in a bin. A thread has had an arena of its own before. */
#include <pthread.h>
#include <stdlib.h>

#include "leftovers.h"

/* Of 8 more bytes than a multiple of 16: the last word is the next chunk's first. */
struct node {
	char room[56];
};

MAKER(make_last)
MAKER(make_before_free)
MAKER(make_kept)

static void *volatile global;

static void *works(void *nothing)
{
	free(malloc(100));
	return nothing;
}

static __attribute__((noinline)) void build(void)
{
	void *large;

	make_before_free();
	large = malloc(3000);
	global = make_kept();
	free(large); /* into the unsorted bin */
	make_last();
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, works, 0);
	pthread_join(thread, 0);
	build();
	wipe();
	clear_registers();
	return 0;
}
