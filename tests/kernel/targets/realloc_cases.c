/* Each way a realloc can go, 13 times. */
#define _GNU_SOURCE
#include "target.h"

/* Volatile: the compiler warns of sizes that cannot be had when it sees them. */
static volatile size_t too_much = PTRDIFF_MAX;

static NOINLINE void *allocate(size_t size)
{
	return malloc(size);
}

static NOINLINE void grow(void)
{
	kept = realloc(allocate(11), 100003);
}

static NOINLINE void shrink(void)
{
	kept = realloc(allocate(1009), 101);
}

static NOINLINE void in_place(void)
{
	void *old = allocate(20);
	uintptr_t address = (uintptr_t)old;
	void *new = realloc(old, 21);

	kept = new;
	if ((uintptr_t)new != address)
		fail("the block moved");
}

static NOINLINE void from_null(void)
{
	kept = realloc(NULL, 103);
}

static NOINLINE void to_zero(void)
{
	volatile size_t zero = 0;

	kept = realloc(allocate(107), zero);
}

static NOINLINE void fail_realloc(void)
{
	void *old = allocate(109);

	kept = old;
	if (realloc(old, too_much) != NULL)
		fail("realloc did not fail");
}

static NOINLINE void fail_array_overflow(void)
{
	void *old = allocate(113);

	kept = old;
	if (reallocarray(old, too_much, 3) != NULL)
		fail("reallocarray did not fail");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "grow", grow }, { "shrink", shrink }, { "in_place", in_place }, { "from_null", from_null },
	{ "to_zero", to_zero }, { "fail", fail_realloc }, { "fail_array_overflow", fail_array_overflow },
};

int main(int argc, char **argv)
{
	for (size_t c = 0; argc == 2 && c < COUNT(cases); c++) {
		if (!is(argv[1], cases[c].name))
			continue;
		for (int i = 0; i < 13; i++)
			cases[c].run();
		return 0;
	}
	fail("usage: realloc_cases CASE");
}
