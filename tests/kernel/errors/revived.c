/* 7 objects, each got and put again after its end, by the same user; then put once more. */
#include "refleak.h"

enum { THINGS = 7 };

#define NOINLINE __attribute__((noinline))

static struct thing {
	int refs;
} things[THINGS];

NOINLINE static void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

NOINLINE static void last_put(struct thing *thing)
{
	refcnt__put(thing, refs);
}

NOINLINE static void get_dead(struct thing *thing)
{
	refcnt__get(thing, refs);
}

NOINLINE static void put_dead(struct thing *thing)
{
	refcnt__put(thing, refs);
}

NOINLINE static void put_once_more(struct thing *thing)
{
	refcnt__put(thing, refs);
}

int main(void)
{
	for (int i = 0; i < THINGS; i++) {
		create_thing(&things[i]);
		last_put(&things[i]);
		get_dead(&things[i]);
		put_dead(&things[i]);
	}
	put_once_more(&things[0]);
	return 0;
}
