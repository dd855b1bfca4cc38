/* 23 blocks, then SIGKILL. */
#include "target.h"
#include <signal.h>

static NOINLINE void before_kill(void)
{
	for (int i = 0; i < 23; i++)
		kept = malloc(73);
}

int main(void)
{
	before_kill();
	kill(getpid(), SIGKILL);
	return 3;
}
