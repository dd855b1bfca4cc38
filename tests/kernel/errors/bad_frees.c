/*
 * One free that breaks a rule, by the case that is named. All others are right.
 *
 * The block of each case has 101 bytes and is made by `make`; `drop` frees it
 * first, and `again` is what should not be. What is no block is zeros: glibc
 * takes the word before it for a size, and aborts at one of 0, whereas it may
 * follow what chance has left there to an arena that is none.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { SIZE = 101, OTHERS = 60, POOL = 4096, GENERATIONS = 7 };

static char data[POOL] = { 1 };
static char pool[POOL];
static size_t pool_used;
static void *volatile kept;

NOINLINE static void *make(size_t size)
{
	return kept = malloc(size);
}

NOINLINE static void drop(void *block)
{
	free(block);
}

NOINLINE static void move(void *block, size_t size)
{
	kept = realloc(block, size);
}

NOINLINE static void again(void *block)
{
	free(block);
}

NOINLINE static void again_by_realloc(void *block, size_t size)
{
	kept = realloc(block, size);
}

NOINLINE static void again_by_pointer(void *block)
{
	void (*volatile function)(void *) = free;

	function(block);
}

NOINLINE static void my_free(void *block)
{
	free(block);
}

NOINLINE static void again_by_wrapper(void *block)
{
	my_free(block);
}

NOINLINE void *pool_alloc(size_t size)
{
	pool_used += 128;
	__asm__ volatile("" : : "r"(size) : "memory");
	return pool + pool_used - 128;
}

NOINLINE void pool_free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

NOINLINE void *pool_realloc(void *block, size_t size)
{
	__asm__ volatile("" : : "r"(block) : "memory");
	return pool_alloc(size);
}

NOINLINE static void *pool_make(void)
{
	return pool_alloc(SIZE);
}

NOINLINE static void pool_drop(void *block)
{
	pool_free(block);
}

NOINLINE static void pool_move(void *block, size_t size)
{
	kept = pool_realloc(block, size);
}

NOINLINE static void pool_again(void *block)
{
	pool_free(block);
}

static void *in_thread(void *block)
{
	again(block);
	return 0;
}

static void *own_stack(void *unused)
{
	char room[512] = { 0 };

	again(room + 32);
	return unused;
}

static void run_thread(void *(*work)(void *), void *block)
{
	pthread_t thread;

	pthread_create(&thread, 0, work, block);
	pthread_join(thread, 0);
}

static void use_others(void)
{
	void *others[OTHERS];

	for (int i = 0; i < OTHERS; i++)
		others[i] = malloc(4 * SIZE);
	for (int i = 0; i < OTHERS; i++)
		free(others[i]);
}

static int is(const char *name, const char *wanted)
{
	return !strcmp(name, wanted);
}

static void in_child(const char *what)
{
	void *block = make(SIZE);
	int is_freed = is(what, "inherited-freed");

	if (is_freed)
		drop(block);
	if (!fork()) {
		void *own = is(what, "child") ? make(SIZE) : block;

		if (!is_freed)
			drop(own);
		again(own);
		_exit(0);
	}
	wait(0);
	if (!is_freed)
		free(block);
}

/* What was made before the trace began is freed, after its neighbour was written past its end or not. */
static void use_older(const char *what, void *block, void *behind)
{
	if (is(what, "older-overwritten")) {
		memset(block, 0xff, SIZE + 15);
		again(behind);
	}
	drop(block);
	use_others();
	again(block);
}

static void bad_in_child(const char *what)
{
	void *block = make(SIZE);
	char room[512] = { 0 };

	if (!fork()) {
		if (is(what, "child-inner"))
			again((char *)make(SIZE) + 24);
		else if (is(what, "child-stack"))
			again(room + 32);
		else
			again(data + 64);
		_exit(0);
	}
	wait(0);
	free(block);
}

/* Sizes of 0, calls that fail, and memory that is not mapped: no rule is broken. */
static void use_odd_sizes(void)
{
	void *block = malloc(0), *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t huge = (size_t)-1 >> 1;

	free(realloc(block, 0));
	free(realloc(0, 0));
	free(0);
	block = calloc(0, SIZE);
	kept = realloc(block, huge);
	kept = reallocarray(block, huge, 4);
	kept = realloc(block, SIZE);
	free(kept);
	kept = malloc(huge);
	free(kept);
	kept = 0;
	if (posix_memalign((void **)&kept, 3, SIZE))
		kept = 0;
	free(kept);
	munmap(page, 4096);
	munmap(page, 4096);
	munmap((void *)1, 4096);
	kept = mremap(page, 4096, 8192, 0);
}

/* Each frees what the others before it made, those too that have freed it since, or have ended. */
static void use_generations(void)
{
	void *blocks[GENERATIONS] = { 0 };

	for (int i = 0; i < GENERATIONS; i++) {
		blocks[i] = make(SIZE + i);
		if (fork()) {
			if (i & 1) {
				drop(blocks[i]);
				blocks[i] = 0;
			}
			if (i != 2)
				wait(0);
			break;
		}
	}
	for (int i = 0; i < GENERATIONS; i++)
		blocks[i] = realloc(blocks[i], 1000 + i);
	for (int i = 0; i < GENERATIONS; i++)
		drop(blocks[i]);
}

static void use_pool(const char *what)
{
	void *block = pool_make();

	if (!strcmp(what, "pool"))
		pool_drop(block);
	else
		pool_move(block, 2 * SIZE);
	for (int i = 0; i < 3; i++)
		pool_again(block);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	char room[512] = { 0 }, *older = malloc(SIZE), *behind = malloc(SIZE);
	void *block;

	if (count > 2) {
		puts("ready");
		fflush(stdout);
		if (read(0, room, 1) != 1)
			return 4;
		room[0] = 0;
	}
	if (!strncmp(what, "older", 5)) {
		use_older(what, older, behind);
		return 0;
	}
	free(behind);
	free(older);
	if (is(what, "child") || is(what, "inherited") || is(what, "inherited-freed")) {
		in_child(what);
		return 0;
	}
	if (!strncmp(what, "child-", 6)) {
		bad_in_child(what);
		return 0;
	}
	if (is(what, "odd-sizes")) {
		use_odd_sizes();
		return 0;
	}
	if (is(what, "generations")) {
		use_generations();
		return 0;
	}
	if (is(what, "pool") || is(what, "pool-moved")) {
		use_pool(what);
		return 0;
	}
	if (is(what, "pools")) {
		again(pool_make());
		return 0;
	}
	if (is(what, "mapped")) {
		block = make(1 << 20);
		drop(block);
		again(block);
		return 0;
	}
	block = make(SIZE);
	if (is(what, "inner")) {
		again((char *)block + 24);
	} else if (is(what, "behind")) {
		again((char *)block + SIZE + 3);
	} else if (is(what, "nowhere")) {
		again((void *)0x12345670);
	} else if (is(what, "inner-freed")) {
		drop(block);
		memset((char *)block + 16, 0, 32);
		again((char *)block + 32);
	} else if (is(what, "inner-pointer")) {
		again_by_pointer((char *)block + 24);
	} else if (is(what, "inner-realloc")) {
		again_by_realloc((char *)block + 24, SIZE);
	} else if (is(what, "stack")) {
		again(room + 32);
	} else if (is(what, "thread-stack")) {
		run_thread(own_stack, 0);
	} else if (is(what, "data")) {
		again(data + 64);
	} else if (is(what, "moved") || is(what, "emptied")) {
		void *behind = malloc(SIZE);

		move(block, is(what, "moved") ? 30 * SIZE : 0);
		again(block);
		free(behind);
	} else if (*what) {
		drop(block);
		if (is(what, "adjacent"))
			again(block);
		else if (is(what, "others"))
			use_others(), again(block);
		else if (is(what, "reused"))
			free(malloc(SIZE)), again(block);
		else if (is(what, "thread"))
			run_thread(in_thread, block);
		else if (is(what, "realloc"))
			again_by_realloc(block, 3 * SIZE);
		else if (is(what, "realloc-zero"))
			again_by_realloc(block, 0);
		else if (is(what, "pointer"))
			again_by_pointer(block);
		else if (is(what, "wrapper"))
			again_by_wrapper(block);
		else
			return 3;
	} else {
		free(block);
	}
	return 0;
}
