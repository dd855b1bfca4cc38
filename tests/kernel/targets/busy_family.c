/* Forks 2 workers that make children all the time, which end at once; says "ready" and waits for a byte; then each of
 * the two keeps 7 blocks, and all end. */
#include "target.h"

#include <poll.h>
#include <sys/wait.h>

static NOINLINE void keep(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(113);
}

static void work(int go)
{
	struct pollfd end = { .fd = go, .events = POLLIN };

	while (poll(&end, 1, 0) == 0) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
	keep();
	exit(0);
}

int main(void)
{
	int go[2];

	if (pipe(go))
		return 1;
	for (int i = 0; i < 2; i++) {
		if (fork())
			continue;
		close(go[1]);
		work(go[0]);
	}
	ready();
	close(go[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
