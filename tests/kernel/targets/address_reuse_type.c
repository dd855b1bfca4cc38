/* 7 counters: an object of type "first" ends there, one of type "second" stays at the same address. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[7];

static NOINLINE void live_as_first(struct thing *thing)
{
	refcnt__init_as(thing, refs, 1, "first");
	if (!refcnt__put(thing, refs))
		fail("not the last");
}

static NOINLINE void stay_as_second(struct thing *thing)
{
	refcnt__init_as(thing, refs, 1, "second");
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		live_as_first(&things[i]);
		stay_as_second(&things[i]);
	}
	return 0;
}
