/* Blocks that are lost, and blocks that are held, whichever allocator has made them: its books point at all of them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT 100

#ifdef GROWS
size_t xallocx(void *, size_t, size_t, int); /* of jemalloc: a block grows in its place, unseen */
#endif
#ifdef ASKS
#include <malloc.h>
#endif

static void *kept[KEPT];
static int tells;
static __thread void *volatile own;

__attribute__((noinline)) static void *make_lost(size_t size)
{
	void *block = malloc(size);

	if (tells)
		dprintf(1, "%p\n", block);
	return memset(block, 1, size);
}

__attribute__((noinline)) static void *make_small_lost(size_t size)
{
	return memset(malloc(size), 1, size);
}

__attribute__((noinline)) static void *make_child(size_t size)
{
	return memset(malloc(size), 1, size);
}

__attribute__((noinline)) static void *make_held(size_t size)
{
	return memset(malloc(size), 0, size);
}

__attribute__((noinline)) static void lose(void)
{
	static const size_t sizes[] = { 5000, 40000, 300000, 5000000 };

	for (int i = 0; i < 40; i++)
		make_small_lost(24 + 8 * (i % 20));
	for (size_t i = 0; i < 4; i++)
		make_lost(sizes[i]);
}

/* The most common leak: who held it is freed. */
__attribute__((noinline)) static void lose_children(void)
{
	void **parents[20];

	for (int i = 0; i < 20; i++) {
		parents[i] = make_held(48);
		parents[i][4] = make_child(64);
	}
	for (int i = 0; i < 20; i++)
		free(parents[i]);
	memset(parents, 0, sizeof(parents));
}

__attribute__((noinline)) static void make_lost_mapping(void)
{
	mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *work(void *unused)
{
	own = make_held(99);
	for (int i = 0; i < 10; i++)
		make_small_lost(40);
	free(make_held(1000));
	return unused;
}

__attribute__((noinline)) static void scrub(void)
{
	char room[16384];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
}

int main(int argc, char **argv)
{
	void **mapped = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	tells = argc > 1; /* where what is lost lies */
	for (int i = 0; i < KEPT; i++)
		kept[i] = make_held(16 + 16 * i);
	own = make_held(77);
	*(void **)kept[0] = mapped;
	mapped[3] = make_held(55);
	lose();
	lose_children();
	make_lost_mapping();
	make_lost_mapping();
	pthread_create(&thread, 0, work, 0);
	pthread_join(thread, 0);
	for (int i = KEPT / 2; i < KEPT; i++) {
		free(kept[i]);
		kept[i] = 0;
	}
#ifdef ASKS
	char *block = make_held(2049 * 8);
	size_t room = malloc_usable_size(block) / 8 * 8;

	if (room >= 2051 * 8)
		*(void **)(block + room - 8) = make_held(33);
	kept[KEPT - 1] = block;
#endif
#ifdef GROWS
	char *grown = make_held(20000);

	if (xallocx(grown, 24000, 0, 0) >= 24000)
		*(void **)(grown + 23992) = make_held(33);
	kept[KEPT - 1] = grown;
#endif
	scrub();
	return 0;
}
