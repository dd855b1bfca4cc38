/* Allocates and frees until stdin is closed or speaks; leaves nothing. */
#include "target.h"
#include <poll.h>

static NOINLINE void allocate_and_free(void)
{
	void *p = malloc(157);

	kept = p;
	free(p);
}

int main(void)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

	say("ready\n");
	while (poll(&input, 1, 0) == 0)
		for (int i = 0; i < 1000; i++)
			allocate_and_free();
	return 0;
}
