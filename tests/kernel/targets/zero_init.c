/* 5 counters are set to 0; 2 of them then begin to live with 1, and end. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[5];

static NOINLINE void init_to_zero(struct thing *thing)
{
	refcnt__init(thing, refs, 0);
}

static NOINLINE void live(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
	if (!refcnt__put(thing, refs))
		fail("not the last");
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++)
		init_to_zero(&things[i]);
	live(&things[0]);
	live(&things[1]);
	return 0;
}
