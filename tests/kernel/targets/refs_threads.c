/* 30 threads get and put one object 1009 times each; main puts it last. */
#include "target.h"
#include "refleak.h"
#include <pthread.h>

static struct thing {
	int refs;
} thing;

static NOINLINE void get_and_put(struct thing *shared)
{
	refcnt__get(shared, refs);
	refcnt__put(shared, refs);
}

static void *run(void *argument)
{
	for (int i = 0; i < 1009; i++)
		get_and_put(argument);
	return NULL;
}

int main(void)
{
	struct thing *shared = &thing;
	pthread_t threads[30];

	refcnt__init(shared, refs, 1);
	for (size_t i = 0; i < COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, run, shared) != 0)
			fail("pthread_create failed");
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	if (!refcnt__put(shared, refs))
		fail("not the last");
	return 0;
}
