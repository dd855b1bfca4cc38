/* first_leaves FOLDER: its first thread ends. Another one makes and frees 20 blocks, writes FOLDER/alone, waits for
 * FOLDER/go, and does that again. */
#include "target.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

static NOINLINE void turn(void)
{
	for (int i = 0; i < 20; i++) {
		kept = malloc(101);
		free(kept);
	}
}

static void *goes_on(void *first)
{
	int file;

	pthread_join(*(pthread_t *)first, NULL);
	turn();
	file = open("alone", O_CREAT | O_WRONLY, 0600);
	if (file < 0 || close(file))
		fail("cannot write");
	while (access("go", F_OK))
		sched_yield();
	turn();
	exit(0);
}

int main(int argc, char **argv)
{
	static pthread_t first;
	pthread_t thread;

	if (argc != 2 || chdir(argv[1]))
		fail("usage: first_leaves FOLDER");
	first = pthread_self();
	if (pthread_create(&thread, NULL, goes_on, &first))
		fail("no thread");
	pthread_exit(NULL);
}
