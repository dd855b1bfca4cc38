/* A counted type whose gets and puts are inlined everywhere: in a row, in loops, under conditions, and nested. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

struct item {
	long id;
	int refs;
	struct item *next;
	long uses;
};

volatile int zero;
struct item shared = { .refs = 1 };
struct item *kept[64];

NOINLINE struct item *item_new(struct item *next)
{
	struct item *item = calloc(1, sizeof(*item));

	item->refs = 1;
	item->next = next;
	return item;
}

NOINLINE void item_free(struct item *item)
{
	free(item);
}

#ifdef ATOMIC
#define INCREMENT(x) __atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED)
#define DECREMENT(x) __atomic_sub_fetch(&(x), 1, __ATOMIC_ACQ_REL)
#else
#define INCREMENT(x) ((x)++)
#define DECREMENT(x) (--(x))
#endif

INLINE struct item *item_ref(struct item *item)
{
	if (item)
		INCREMENT(item->refs);
	return item;
}

/* A get by another name, which gets by the first: counts once. */
INLINE struct item *item_ref_used(struct item *item)
{
	return item_ref(item);
}

INLINE void item_unref(struct item *item)
{
	if (item && !DECREMENT(item->refs))
		item_free(item);
}

#ifndef STRAIGHT
/* Out of line, with an inlined get in it: counts once. */
NOINLINE struct item *item_ref_checked(struct item *item)
{
	return item->id >= 0 ? item_ref(item) : NULL;
}
#endif

NOINLINE void once(struct item *item)
{
	item_unref(item_ref(item));
}

NOINLINE void many(struct item *item, int n)
{
	for (int i = 0; i < n; i++)
		kept[i] = item_ref(item);
	for (int i = 0; i < n; i++)
		item_unref(kept[i]);
}

#ifndef STRAIGHT
NOINLINE void sometimes(struct item *item, int n)
{
	for (int i = 0; i < n; i++)
		if (i % 3 == 0)
			item_ref(item);
	for (int i = n - 1; i >= 0; i--)
		if (i % 3 == 0)
			item_unref(item);
}

NOINLINE void chosen(struct item *item, int what)
{
	switch (what) {
	case 0: item_ref(item); item->id = 1; break;
	case 1: item->id = 2; break;
	case 2: item->id = 3; item_ref(item); break;
	case 3: item_ref(item->next); break;
	case 4: item->id = 5; item_unref(item->next); break;
	case 5: item->id = 6; item_unref(item); break;
	default: item->id = 7; item_unref(item);
	}
}

NOINLINE void chain(struct item *item)
{
	while (item->next) {
		item_ref_used(item->next);
		item = item->next;
	}
}

NOINLINE void unchain(struct item *item)
{
	struct item *next;

	for (item = item->next; item; item = next) {
		next = item->next;
		item_unref(item);
	}
}

#endif

/* One of these is never put. */
NOINLINE struct item *leak(struct item *item)
{
	return item_ref(item);
}

int main(void)
{
	struct item *first = item_new(NULL), *second = item_new(first), *third = item_new(second);

	once(first);				/* 1 get, 1 put */
	once(NULL);				/* nothing */
	many(first, 17);			/* 17, 17 */
#ifndef STRAIGHT
	sometimes(first, 20);			/* 7, 7 */
	for (int what = 0; what < 7; what++)	/* 3, 3 */
		chosen(second, what);
	chain(third);				/* 2 */
	unchain(third);				/* 2 */
	item_unref(item_ref_checked(first));	/* 1, 1 */
#endif
	leak(second);				/* 1 */
	leak(zero ? second : NULL);		/* nothing */
	item_unref(third);			/* 1, the last of third */
	item_unref(second);			/* 1 */
	item_unref(first);			/* 1, the last of first */
	return 0;
}
