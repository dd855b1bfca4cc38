/*
 * busy [fork]: "ready", then makes and frees blocks, with "fork" in a child too, until a byte or the end of stdin
 * comes; then "ended well". What it wrote to its blocks must be what it finds there.
 */
#include "target.h"
#include <poll.h>
#include <sys/wait.h>

static NOINLINE void work(unsigned char seed)
{
	unsigned char *blocks[17];

	for (size_t i = 0; i < COUNT(blocks); i++) {
		blocks[i] = malloc(101 + i);
		memset(blocks[i], (unsigned char)(seed + i), 101 + i);
	}
	for (size_t i = 0; i < COUNT(blocks); i++) {
		for (size_t at = 0; at < 101 + i; at++)
			if (blocks[i][at] != (unsigned char)(seed + i))
				fail("a block was overwritten");
		free(blocks[i]);
	}
}

static void work_in_child(unsigned char seed)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("fork failed");
	if (child == 0) {
		work(seed);
		_exit(7);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		fail("the child failed");
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int forks = argc == 2 && is(argv[1], "fork");

	say("ready\n");
	for (unsigned char seed = 0; poll(&input, 1, 0) == 0; seed++) {
		work(seed);
		if (forks)
			work_in_child(seed);
	}
	say("ended well\n");
	return 0;
}
