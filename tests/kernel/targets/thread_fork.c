/* 7 threads at once, each of which forks; each child leaves 3 blocks, each thread 2. */
#include "target.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_barrier_t together;

static NOINLINE void in_thread(void)
{
	for (int i = 0; i < 2; i++)
		kept = malloc(67);
}

static NOINLINE void in_child_of_thread(void)
{
	for (int i = 0; i < 3; i++)
		kept = malloc(71);
}

static void *thread(void *unused)
{
	int status;
	pid_t child;

	(void)unused;
	pthread_barrier_wait(&together);
	child = fork();
	if (child < 0)
		fail("fork failed");
	if (child == 0) {
		in_child_of_thread();
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("a child failed");
	in_thread();
	return NULL;
}

int main(void)
{
	pthread_t threads[7];

	pthread_barrier_init(&together, NULL, COUNT(threads));
	for (size_t i = 0; i < COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, thread, NULL) != 0)
			fail("no thread");
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	return 0;
}
