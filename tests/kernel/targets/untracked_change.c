/* 3 objects whose count somebody raises by 2 without a stub, before a get. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[3];

static NOINLINE void create_thing(struct thing *thing)
{
	refcnt__init(thing, refs, 1);
}

static NOINLINE void change_without_stub(struct thing *thing)
{
	__atomic_fetch_add(&thing->refs, 2, __ATOMIC_RELAXED);
}

static NOINLINE void get_thing(struct thing *thing)
{
	refcnt__get(thing, refs);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_thing(&things[i]);
		change_without_stub(&things[i]);
		get_thing(&things[i]);
	}
	return 0;
}
