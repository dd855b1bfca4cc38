/* malloc and its family as a library of their own (--allocator), over those of glibc. */
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static volatile unsigned long calls;

void *malloc(size_t size)
{
	void *p = __libc_malloc(size);

	calls++;
	return p;
}

void *calloc(size_t count, size_t size)
{
	void *p = __libc_calloc(count, size);

	calls++;
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p = __libc_realloc(old, size);

	calls++;
	return p;
}

void free(void *p)
{
	__libc_free(p);
	calls++;
}
