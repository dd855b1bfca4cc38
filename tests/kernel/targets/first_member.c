/* 5 structs whose first member is counted too: both objects have one address. The outer ones end, the inner stay. */
#include "target.h"
#include "refleak.h"

struct inner {
	int refs;
};

static struct outer {
	struct inner inner;
	int refs;
} objects[5];

static NOINLINE void create_inner(struct inner *inner)
{
	refcnt__init(inner, refs, 1);
}

static NOINLINE void create_outer(struct outer *outer)
{
	create_inner(&outer->inner);
	refcnt__init(outer, refs, 1);
}

static NOINLINE void end_outer(struct outer *outer)
{
	refcnt__get(outer, refs);
	refcnt__put(outer, refs);
	if (!refcnt__put(outer, refs))
		fail("not the last");
}

int main(void)
{
	for (size_t i = 0; i < COUNT(objects); i++) {
		create_outer(&objects[i]);
		end_outer(&objects[i]);
	}
	return 0;
}
