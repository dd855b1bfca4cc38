/* The four functions as plain C has them: the same names, which refleak finds by symbol, and no nop at the start. */
#define STUB __attribute__((noinline, noclone, used))

STUB void __refcnt__init(int *refcnt, int n, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name) : "memory");
	__atomic_store_n(refcnt, n, __ATOMIC_RELAXED);
}

STUB void __refcnt__get(int *refcnt, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name) : "memory");
	__atomic_add_fetch(refcnt, 1, __ATOMIC_RELAXED);
}

STUB int __refcnt__put(int *refcnt, void *obj, const char *name)
{
	__asm__ volatile("" : : "r"(obj), "r"(name) : "memory");
	return __atomic_sub_fetch(refcnt, 1, __ATOMIC_RELAXED) == 0;
}

STUB void refcnt__delete(void *obj)
{
	__asm__ volatile("" : : "r"(obj) : "memory");
}
