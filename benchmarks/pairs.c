/*
 * Time malloc+free pairs, or get+put pairs through stubs, below stacks of given depths.
 * usage: pairs KIND DEPTH[,DEPTH...] COUNT THREADS     KIND: malloc | stub
 * Prints the nanoseconds per pair, a line for each depth. With -DPLAIN_STUBS the
 * stubs are those of plain_stubs.c, which do not begin with a nop.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef PLAIN_STUBS
void __refcnt__init(int *refcnt, int n, void *obj, const char *name);
void __refcnt__get(int *refcnt, void *obj, const char *name);
int __refcnt__put(int *refcnt, void *obj, const char *name);
#define refcnt__init(obj, member, n) __refcnt__init(&(obj)->member, n, obj, #obj)
#define refcnt__get(obj, member) __refcnt__get(&(obj)->member, obj, #obj)
#define refcnt__put(obj, member) __refcnt__put(&(obj)->member, obj, #obj)
#else
#include "../examples/refleak.h"
#endif

struct counted {
	int refcnt;
};

static const char *kind;
static long count;

static void pairs(void)
{
	struct counted counted;

	if (!strcmp(kind, "malloc")) {
		for (long i = 0; i < count; i++) {
			void *block = malloc(32);

			__asm__ volatile("" : : "r"(block) : "memory");
			free(block);
		}
		return;
	}
	refcnt__init(&counted, refcnt, 1);
	for (long i = 0; i < count; i++) {
		refcnt__get(&counted, refcnt);
		refcnt__put(&counted, refcnt);
	}
}

__attribute__((noinline)) static void deep(int depth)
{
	char room[24];

	__asm__ volatile("" : : "r"(room) : "memory");
	if (depth > 0)
		deep(depth - 1);
	else
		pairs();
	__asm__ volatile("" : : "r"(room) : "memory");	/* no tail call: the frame must stay */
}

static int depth;

static void *thread(void *unused)
{
	deep(depth);
	return unused;
}

static double time_once(int threads_wanted)
{
	struct timespec begin, end;
	pthread_t threads[64];

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (threads_wanted == 1) {
		deep(depth);
	} else {
		for (int i = 0; i < threads_wanted; i++)
			pthread_create(&threads[i], NULL, thread, NULL);
		for (int i = 0; i < threads_wanted; i++)
			pthread_join(threads[i], NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / count;
}

int main(int argc, char **argv)
{
	int wanted;

	if (argc != 5)
		return 2;
	kind = argv[1];
	count = atol(argv[3]);
	wanted = atoi(argv[4]);
	if (count < 1 || wanted < 1 || wanted > 64)
		return 2;
	for (char *word = strtok(argv[2], ","); word; word = strtok(NULL, ",")) {
		depth = atoi(word);
		printf("%.2f\n", time_once(wanted));
	}
	return 0;
}
