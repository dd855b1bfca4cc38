/* A fork without exec: parent and child free different ones of 13 blocks, the child allocates 7 of its own. */
#include "target.h"
#include <sys/wait.h>

static void *blocks[13];

static NOINLINE void before_fork(void)
{
	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = malloc(37);
}

static NOINLINE void in_child(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(41);
}

static NOINLINE void release(size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
		free(blocks[i]);
}

int main(void)
{
	int status;
	pid_t child;

	before_fork();
	child = fork();
	if (child < 0)
		fail("fork failed");
	if (child == 0) {
		release(0, 5);
		in_child();
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	release(11, 2);
	return 0;
}
