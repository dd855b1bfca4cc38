/* paired_children N: N children, one after the other; the parent makes a block before each, and the child three. Says
 * "ready" at first, and ends at once if nothing comes on its stdin. */
#include "target.h"
#include <sys/wait.h>

#define MOST 1000

static void *volatile blocks[MOST];

static NOINLINE void in_parent(int at)
{
	blocks[at] = malloc(77);
}

static NOINLINE void in_child(void)
{
	for (int i = 0; i < 3; i++)
		blocks[i] = malloc(55);
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0, status;
	char go;

	if (count < 1 || count > MOST)
		fail("usage: paired_children N");
	say("ready\n");
	if (read(0, &go, 1) != 1)
		return 0;
	for (int i = 0; i < count; i++) {
		pid_t child;

		in_parent(i);
		child = fork();
		if (child == 0) {
			in_child();
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			fail("a child failed");
		if (i == count / 2 && read(0, &go, 1) != 1)
			return 1;
	}
	return 0;
}
