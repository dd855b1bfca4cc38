/* Forks 2 children and a child of the first, says "ready" and waits for a byte; then each of the three keeps 7 blocks,
 * and all end. */
#include "target.h"

#include <sys/wait.h>

static NOINLINE void keep(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(113);
}

int main(void)
{
	int go[2], ended[2];
	char byte;

	if (pipe(go) || pipe(ended))
		return 1;
	for (int i = 0; i < 2; i++) {
		if (fork())
			continue;
		if (i == 0)
			fork();
		close(go[1]);
		if (write(ended[1], "r", 1) != 1)
			_exit(1);
		byte = (char)read(go[0], &byte, 1);
		keep();
		while (wait(NULL) > 0)
			;
		exit(0);
	}
	for (int i = 0; i < 3; i++)
		if (read(ended[0], &byte, 1) != 1)
			return 2;
	ready();
	close(go[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
