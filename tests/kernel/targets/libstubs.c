/* Has stubs of its own, that no other binary sees, and uses them while it is loaded. */
#include "target.h"

struct late {
	long pad;
	int refs;
};

static __attribute__((__noipa__, __used__)) void __refcnt__init(int *refcnt, int n, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name));
	__atomic_store_n(refcnt, n, __ATOMIC_RELAXED);
}

static __attribute__((__noipa__, __used__)) void __refcnt__get(int *refcnt, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name));
	__atomic_fetch_add(refcnt, 1, __ATOMIC_RELAXED);
}

__attribute__((__noipa__, __used__, __visibility__("hidden"))) int __refcnt__put(int *refcnt, void *obj,
										  const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name));
	return __atomic_sub_fetch(refcnt, 1, __ATOMIC_ACQ_REL) == 0;
}

__attribute__((__noipa__, __used__, __visibility__("hidden"))) void refcnt__delete(void *obj)
{
	__asm__ volatile("" : : "r"(obj));
}

static struct late objects[7];

static NOINLINE void create_late(struct late *late)
{
	__refcnt__init(&late->refs, 1, late, "late");
}

static __attribute__((__constructor__)) void construct(void)
{
	for (size_t i = 0; i < COUNT(objects); i++)
		create_late(&objects[i]);
	for (int i = 0; i < 3; i++)
		__refcnt__get(&objects[0].refs, &objects[0], "late");
	for (int i = 5; i < 7; i++)
		if (__refcnt__put(&objects[i].refs, &objects[i], "late"))
			refcnt__delete(&objects[i]);
}
