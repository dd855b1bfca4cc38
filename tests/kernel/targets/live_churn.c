/*
 * live_churn [EXCHANGES]: four threads that put new blocks into a table of 6,000 places and free what was there, whoever
 * made it. All are freed at the end but 29.
 */
#include "target.h"
#include <pthread.h>

#define THREADS 4
#define PLACES 6000
#define KEPT 29

static void *table[PLACES];
static long exchanges = 60000;

static NOINLINE void *make_churned(size_t size)
{
	return malloc(size);
}

static void *run(void *argument)
{
	unsigned long random = (unsigned long)argument * 2654435761u + 1;

	for (long i = 0; i < exchanges; i++) {
		random = random * 6364136223846793005ul + 1442695040888963407ul;
		free(__atomic_exchange_n(&table[(random >> 33) % PLACES], make_churned(16 + (random >> 60)),
					 __ATOMIC_SEQ_CST));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc == 2)
		exchanges = atol(argv[1]);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(i + 1)) != 0)
			fail("pthread_create failed");
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < PLACES; i++)
		free(table[i]);
	for (size_t i = 0; i < KEPT; i++)
		kept = make_churned(64);
	return 0;
}
