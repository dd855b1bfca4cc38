/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the wrappers of wrappers.S pass on to: the next functions of each name,
 * which may be those of another allocator. Linked without a C library, so that it
 * asks for none that the program does not have.
 */
typedef unsigned long size_t;

#define HIDDEN __attribute__((__visibility__("hidden")))
#define NULL ((void *)0)
#define NEXT ((void *)-1L) /* RTLD_NEXT */
#define FUNCTIONS(do)                                                                                        \
	do(malloc) do(calloc) do(realloc) do(reallocarray) do(free) do(memalign) do(aligned_alloc)           \
	do(posix_memalign) do(valloc) do(pvalloc)

#define DECLARE(name)                                 \
	extern void *refleak_next_##name HIDDEN;      \
	extern char refleak_first_##name[] HIDDEN;    \
	extern char refleak_wrapper_##name[] HIDDEN;
FUNCTIONS(DECLARE)
DECLARE(dlsym)
DECLARE(dlopen)

extern void *dlvsym(void *handle, const char *name, const char *version) __attribute__((__weak__));
extern void refleak_preloaded(void) HIDDEN;

/*
 * The heap while the next functions are looked for: dlsym may allocate to say
 * that it has found nothing. One thread runs then.
 */
static _Alignas(16) char heap[1 << 14];
static size_t heap_used;

static int is_of_heap(const void *block)
{
	return (const char *)block >= heap && (const char *)block < heap + sizeof(heap);
}

static void *heap_malloc(size_t size)
{
	size_t at = heap_used;

	if (size > sizeof(heap) - at - 32)
		return NULL;
	*(size_t *)(heap + at) = size;
	heap_used = at + 16 + ((size + 15) & -(size_t)16);
	return heap + at + 16;
}

static void *heap_calloc(size_t count, size_t size)
{
	return size && count > sizeof(heap) / size ? NULL : heap_malloc(count * size);
}

static void *heap_realloc(void *old, size_t size)
{
	char *new = heap_malloc(size);

	for (size_t i = 0; new && old && i < size && i < ((size_t *)old)[-2]; i++)
		new[i] = ((char *)old)[i];
	return new;
}

static void heap_free(void *block)
{
	(void)block;
}

static void (*real_free)(void *);
static void *(*real_malloc)(size_t);
static void *(*real_realloc)(void *, size_t);

/* These two stand before the real ones where the heap was used. */
static void checked_free(void *block)
{
	if (!is_of_heap(block))
		real_free(block);
}

static void *checked_realloc(void *old, size_t size)
{
	char *new;

	if (!is_of_heap(old))
		return real_realloc(old, size);
	new = real_malloc(size);
	for (size_t i = 0; new && i < size && i < ((size_t *)old)[-2]; i++)
		new[i] = ((char *)old)[i];
	return new;
}

static void use_heap(void)
{
	refleak_next_malloc = heap_malloc;
	refleak_next_calloc = heap_calloc;
	refleak_next_realloc = heap_realloc;
	refleak_next_free = heap_free;
}

static void keep_heap(void)
{
	if (!heap_used)
		return;
	real_malloc = refleak_next_malloc;
	real_realloc = refleak_next_realloc;
	real_free = refleak_next_free;
	refleak_next_realloc = checked_realloc;
	refleak_next_free = checked_free;
}

static void *loaders(const char *name)
{
	void *found = dlvsym(NEXT, name, "GLIBC_2.34");

	return found ? found : dlvsym(NEXT, name, "GLIBC_2.2.5");
}

/* Called by whichever function is called first, the loader's own malloc mostly. */
HIDDEN void refleak_look(void)
{
	static int has_begun;
	void *(*lookup)(void *, const char *);

	if (has_begun || !dlvsym)
		__builtin_trap();
	has_begun = 1;
	refleak_preloaded();
	use_heap();
	refleak_next_dlopen = loaders("dlopen");
	refleak_next_dlsym = loaders("dlsym");
	lookup = (void *(*)(void *, const char *))refleak_next_dlsym;
#define FIND(name) void *name##_found = lookup(NEXT, #name);
	FUNCTIONS(FIND)
#define KEEP(name) refleak_next_##name = name##_found;
	FUNCTIONS(KEEP)
	keep_heap();
}

__attribute__((__constructor__)) static void look_at_start(void)
{
	if (refleak_next_malloc == refleak_first_malloc)
		refleak_look();
}

static int is_equal(const char *one, const char *other)
{
	while (*one && *one == *other)
		one++, other++;
	return *one == *other;
}

/* What a library's handle has for a name: calls through it would pass the wrapper by. */
HIDDEN void *refleak_given(void *handle, const char *asked)
{
	void *(*lookup)(void *, const char *) = (void *(*)(void *, const char *))refleak_next_dlsym;
	void *found = lookup(handle, asked);

#define WRAPPED(name)                                                       \
	if (found && found == refleak_next_##name && is_equal(asked, #name)) \
		return refleak_wrapper_##name;
	FUNCTIONS(WRAPPED)
	return found;
}
