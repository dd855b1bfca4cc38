/* Time malloc+free pairs, or get+put pairs through stubs, below a stack of a given depth.
 * usage: pairs KIND DEPTH COUNT THREADS     KIND: malloc | stub (begins with a nop) | plain (does not) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../examples/refleak.h"

struct counted {
	int refcnt;
};

__attribute__((noinline, noclone)) void plain_get(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline, noclone)) void plain_put(int *counter)
{
	__atomic_sub_fetch(counter, 1, __ATOMIC_RELAXED);
}

static const char *kind;
static long count;

static void pairs(void)
{
	static struct counted counted;

	if (!strcmp(kind, "malloc")) {
		for (long i = 0; i < count; i++) {
			void *block = malloc(32);

			__asm__ volatile("" : : "r"(block) : "memory");
			free(block);
		}
		return;
	}
	refcnt__init(&counted, refcnt, 1);
	if (!strcmp(kind, "stub")) {
		for (long i = 0; i < count; i++) {
			refcnt__get(&counted, refcnt);
			refcnt__put(&counted, refcnt);
		}
		return;
	}
	for (long i = 0; i < count; i++) {
		plain_get(&counted.refcnt);
		plain_put(&counted.refcnt);
	}
}

__attribute__((noinline)) static void deep(int depth)
{
	volatile char room[24];

	room[0] = depth;
	if (depth > 0)
		deep(depth - 1);
	else
		pairs();
	room[1] = 1;
}

static int depth;

static void *thread(void *unused)
{
	deep(depth);
	return unused;
}

int main(int argc, char **argv)
{
	struct timespec begin, end;
	pthread_t threads[64];
	int wanted;

	if (argc != 5)
		return 2;
	kind = argv[1];
	depth = atoi(argv[2]);
	count = atol(argv[3]);
	wanted = atoi(argv[4]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (wanted == 1) {
		deep(depth);
	} else {
		for (int i = 0; i < wanted; i++)
			pthread_create(&threads[i], NULL, thread, NULL);
		for (int i = 0; i < wanted; i++)
			pthread_join(threads[i], NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / count);
	return 0;
}
