/* Allocates, counts, prints, and leaves nothing. `clean quiet` prints nothing, so that libc allocates no buffer either. */
#include "target.h"
#include "refleak.h"
#include <stdio.h>
#include <sys/mman.h>

struct thing {
	int refs;
};

static NOINLINE struct thing *thing_new(void)
{
	struct thing *thing = malloc(sizeof(*thing));

	refcnt__init(thing, refs, 1);
	return thing;
}

static NOINLINE void thing_put(struct thing *thing)
{
	if (refcnt__put(thing, refs)) {
		refcnt__delete(thing);
		free(thing);
	}
}

int main(int argc, char **argv)
{
	int quiet = argc == 2 && is(argv[1], "quiet");

	for (int i = 0; i < 1009; i++) {
		struct thing *thing = thing_new();
		char *text = calloc(7, 11);

		refcnt__get(thing, refs);
		text = realloc(text, 101);
		kept = text;
		thing_put(thing);
		free(text);
		thing_put(thing);
		if (!quiet)
			printf("%d\n", i);
	}
	kept = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(kept, PAGE);
	return 0;
}
