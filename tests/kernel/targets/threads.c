/* 30 threads: each allocates 101 blocks, and frees those of its neighbour but one; two of thread 7's stay. */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>

#define THREADS 30
#define BLOCKS 101

static void *blocks[THREADS][BLOCKS];
static pthread_barrier_t barrier;

static NOINLINE void allocate_in_thread(size_t thread)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[thread][i] = malloc(67);
}

static NOINLINE void free_in_other_thread(size_t thread)
{
	for (int i = thread == 7 ? 2 : 1; i < BLOCKS; i++)
		free(blocks[thread][i]);
}

static void *run(void *argument)
{
	size_t thread = (size_t)argument;

	allocate_in_thread(thread);
	pthread_barrier_wait(&barrier);
	free_in_other_thread((thread + 1) % THREADS);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
			fail("pthread_create failed");
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
