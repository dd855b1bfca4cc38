/* Made to be attached to with 7 threads: "ready", a byte, then each makes 11 blocks and frees 4, "done", end of file. */
#include "target.h"
#include <pthread.h>

static pthread_barrier_t begin, end;

static NOINLINE void leak_in_thread(void)
{
	void *blocks[11];

	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = malloc(173);
	for (size_t i = 0; i < 4; i++)
		free(blocks[i]);
}

static void *thread(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&begin);
	leak_in_thread();
	pthread_barrier_wait(&end);
	return NULL;
}

int main(void)
{
	pthread_t threads[7];

	pthread_barrier_init(&begin, NULL, COUNT(threads) + 1);
	pthread_barrier_init(&end, NULL, COUNT(threads) + 1);
	for (size_t i = 0; i < COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, thread, NULL) != 0)
			fail("no thread");
	ready();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	say("done\n");
	while (await_byte())
		;
	_exit(0);
}
