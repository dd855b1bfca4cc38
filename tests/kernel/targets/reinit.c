/* 5 objects, each initialised again while alive, then put for the last time. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[5];

static NOINLINE void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

static NOINLINE void init_again(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

static NOINLINE void last_put(struct thing *thing)
{
	if (!refcnt__put(thing, refs))
		fail("not the last");
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_thing(&things[i]);
		init_again(&things[i]);
		last_put(&things[i]);
	}
	return 0;
}
