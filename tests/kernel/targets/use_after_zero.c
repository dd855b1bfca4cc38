/* 5 objects, each got again after its count has reached zero. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[5];

static NOINLINE void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

static NOINLINE void last_put(struct thing *thing)
{
	if (!refcnt__put(thing, refs))
		fail("not the last");
}

static NOINLINE void get_after_zero(struct thing *thing)
{
	refcnt__get(thing, refs);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_thing(&things[i]);
		last_put(&things[i]);
		get_after_zero(&things[i]);
	}
	return 0;
}
