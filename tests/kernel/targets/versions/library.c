/* Version 1 or 2 of a library that counts references: its stubs stand elsewhere in each. */
#include "target.h"

#define TYPE_OF(version) "object of " #version
#define TYPE(version) TYPE_OF(version)

#define TABLE_BYTES 2048

/* In the second version there are data where the first one's stubs stood. */
#if VERSION == 2
__asm__(".pushsection .text\ntable:\n.fill 2048, 1, 0x5a\n.popsection\n");
#else
__asm__(".pushsection .data\ntable:\n.fill 2048, 1, 0x5a\n.popsection\n");
#endif
extern const volatile unsigned char table[TABLE_BYTES] __attribute__((__visibility__("hidden")));

static __attribute__((__noipa__, __used__)) void __refcnt__init(int *refcnt, int n, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name));
	__atomic_store_n(refcnt, n, __ATOMIC_RELAXED);
}

static __attribute__((__noipa__, __used__)) int __refcnt__put(int *refcnt, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name));
	return __atomic_sub_fetch(refcnt, 1, __ATOMIC_ACQ_REL) == 0;
}

static int *objects;

static __attribute__((__constructor__)) void construct(void)
{
	objects = malloc(8 * sizeof(*objects));
	kept = (void *)(uintptr_t)*(volatile const char *)TYPE(VERSION);	/* whose page is in memory from now on */
	for (size_t i = 0; i < 8; i++)
		__refcnt__init(&objects[i], 1, &objects[i], TYPE(VERSION));
}

int version(void);

NOINLINE int version(void)
{
	int put = 0, changed = 0;

	for (int i = 0; i < (VERSION == 1 ? 3 : 5); i++)
		put += __refcnt__put(&objects[i], &objects[i], TYPE(VERSION));
	for (size_t i = 0; i < TABLE_BYTES; i++)
		changed += table[i] != 0x5a;
	return 100 * changed + 10 * put + VERSION;
}
