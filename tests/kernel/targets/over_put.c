/* 7 objects, each put once too often. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[7];

static NOINLINE void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

static NOINLINE void last_put(struct thing *thing)
{
	if (!refcnt__put(thing, refs))
		fail("not the last");
}

static NOINLINE void put_once_too_often(struct thing *thing)
{
	refcnt__put(thing, refs);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_thing(&things[i]);
		last_put(&things[i]);
		put_once_too_often(&things[i]);
	}
	return 0;
}
