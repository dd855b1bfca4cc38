/* Threads whose first call of the heap is a free: malloc makes its arenas there. Everything is given back. */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 5, BLOCKS = 53 };

static void *made[THREADS];

static void *work(void *number)
{
	free(made[(long)number]);
	for (int i = 0; i < BLOCKS; i++) {
		void *block = malloc(100 + 37 * i);

		free(block);
	}
	return 0;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		made[i] = malloc(100);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	return 0;
}
