/* 5 objects: 3 are deleted while their count is 2, and 2 after it has reached zero. */
#include "target.h"
#include "refleak.h"

static struct thing {
	long pad;
	int refs;
} things[5];

static NOINLINE void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
	refcnt__get(thing, refs);
}

static NOINLINE void delete_while_referenced(struct thing *thing)
{
	refcnt__delete(thing);
}

static NOINLINE void delete_at_zero(struct thing *thing)
{
	refcnt__put(thing, refs);
	if (!refcnt__put(thing, refs))
		fail("not the last");
	refcnt__delete(thing);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_thing(&things[i]);
		if (i < 3)
			delete_while_referenced(&things[i]);
		else
			delete_at_zero(&things[i]);
	}
	return 0;
}
