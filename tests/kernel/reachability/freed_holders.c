/* Lists that are freed with a thing in them: SIZE bytes, the thing at OFFSET; every third one forgets its put. Their memory
 * is used again at once. */
#include <stdlib.h>
#include <string.h>

#include "refleak.h"

#define NOINLINE __attribute__((__noinline__))

struct thing {
	long pad;
	int refs;
};

static NOINLINE struct thing *thing_new(void)
{
	struct thing *thing = calloc(1, sizeof(*thing));

	refcnt__init(thing, refs, 1);
	return thing;
}

static NOINLINE struct thing *thing_get(struct thing *thing)
{
	refcnt__get(thing, refs);
	return thing;
}

static NOINLINE void thing_put(struct thing *thing)
{
	if (!refcnt__put(thing, refs))
		return;
	refcnt__delete(thing);
	free(thing);
}

static NOINLINE void *list_new(struct thing *thing, size_t size, size_t offset)
{
	char *list = calloc(1, size);

	*(struct thing **)(list + offset) = thing_get(thing);
	return list;
}

static NOINLINE void list_delete(char *list, size_t offset, int forgets)
{
	if (!forgets)
		thing_put(*(struct thing **)(list + offset));
	free(list);
}

static NOINLINE void use_again(size_t size)
{
	char *other = malloc(size);

	memset(other, 0x55, size);
	free(other);
}

int main(int argc, char **argv)
{
	size_t size = strtoul(argv[1], NULL, 0), offset = strtoul(argv[2], NULL, 0);
	int count = atoi(argv[3]);

	(void)argc;
	for (int i = 0; i < count; i++) {
		struct thing *thing = thing_new();
		void *one = list_new(thing, size, offset), *other = list_new(thing, size, offset);

		list_delete(one, offset, i % 3 == 0);
		use_again(size);
		list_delete(other, offset, 0);
		use_again(size);
		thing_put(thing);
	}
	return 0;
}
