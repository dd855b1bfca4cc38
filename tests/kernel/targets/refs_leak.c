/* Three types: some a never put, some b got and not put, some c with balanced gets and no last put. */
#include "target.h"
#include "refleak.h"

static struct thing {
	long pad;
	int refs;
} as[13], bs[11], cs[5];

static NOINLINE void create_a(struct thing *a)
{
	refcnt__init(a, refs, 1);
}

static NOINLINE void drop_a(struct thing *a)
{
	if (refcnt__put(a, refs))
		refcnt__delete(a);
}

static NOINLINE void create_b(struct thing *b)
{
	refcnt__init(b, refs, 1);
}

static NOINLINE void use_b(struct thing *b)
{
	refcnt__get(b, refs);
}

static NOINLINE void release_b(struct thing *b)
{
	refcnt__put(b, refs);
}

static NOINLINE void create_c(struct thing *c)
{
	refcnt__init(c, refs, 1);
}

static NOINLINE void hold_c(struct thing *c)
{
	refcnt__get(c, refs);
}

static NOINLINE void release_c(struct thing *c)
{
	refcnt__put(c, refs);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(as); i++)
		create_a(&as[i]);
	for (size_t i = 0; i < 6; i++)
		drop_a(&as[i]);
	for (size_t i = 0; i < COUNT(bs); i++) {
		create_b(&bs[i]);
		use_b(&bs[i]);
	}
	for (size_t i = 0; i < 6; i++) {
		release_b(&bs[i]);
		release_b(&bs[i]);
	}
	for (size_t i = 0; i < COUNT(cs); i++) {
		create_c(&cs[i]);
		for (int n = 0; n < 3; n++)
			hold_c(&cs[i]);
		for (int n = 0; n < 3; n++)
			release_c(&cs[i]);
		if (i < 2)
			release_c(&cs[i]);
	}
	return 0;
}
