/* A child that outlives its parent: it leaves 7 blocks once the parent has ended, which leaves 11. */
#include "target.h"

static NOINLINE void in_parent(void)
{
	for (int i = 0; i < 11; i++)
		kept = malloc(37);
}

static NOINLINE void after_the_parent(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(41);
}

int main(void)
{
	int lifeline[2];
	char byte;
	pid_t child;

	if (pipe(lifeline) != 0)
		fail("pipe failed");
	in_parent();
	child = fork();
	if (child < 0)
		fail("fork failed");
	if (child != 0)
		return 0;
	close(lifeline[1]);
	if (read(lifeline[0], &byte, 1) != 0)
		fail("the lifeline spoke");
	after_the_parent();
	return 5;
}
