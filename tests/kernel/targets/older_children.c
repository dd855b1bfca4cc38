/* Forks 3 children that wait until it ends, says "ready", waits for a byte. */
#include "target.h"

#include <sys/wait.h>

int main(void)
{
	int ends[2];
	char byte;

	if (pipe(ends))
		return 1;
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		close(ends[1]);
		_exit((int)read(ends[0], &byte, 1));
	}
	ready();
	close(ends[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
