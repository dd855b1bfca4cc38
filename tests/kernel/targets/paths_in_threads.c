/*
 * Six threads that call a, b and c in each other in random orders, on frames of two sizes, and make a block at the end of
 * each way: of 1,000 bytes and the number that the way has in base 3. One of 64 stays.
 */
#define _GNU_SOURCE
#include "target.h"
#include <alloca.h>
#include <pthread.h>
#include <string.h>

#define THREADS 6
#define WAYS 40000
#define CALLS 5

static __thread unsigned long random_state;

static unsigned pick(unsigned below)
{
	random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
	return (random_state >> 33) % below;
}

static NOINLINE void leaf(long way)
{
	void *block = malloc(1000 + way);

	if (pick(64))
		free(block);
}

static void go_on(int calls, long way);

#define FUNCTION(name, digit) \
	static NOINLINE void name(int calls, long way) \
	{ \
		char *room = alloca(16 + 16 * (digit == 0 && pick(2))); \
		memset(room, 1, 8); \
		go_on(calls - 1, way * 3 + digit); \
		memset(room, 2, 8); \
	}

FUNCTION(a, 0)
FUNCTION(b, 1)
FUNCTION(c, 2)

static NOINLINE void go_on(int calls, long way)
{
	if (!calls)
		leaf(way);
	else
		(pick(3) ? pick(2) ? a : b : c)(calls, way);
}

static void *run(void *argument)
{
	random_state = (unsigned long)argument;
	for (int i = 0; i < WAYS; i++)
		go_on(CALLS, 0);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(i + 1)) != 0)
			fail("pthread_create failed");
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
