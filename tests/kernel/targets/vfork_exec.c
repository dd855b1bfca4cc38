/*
 * vfork and exec: 11 blocks of the parent, 5 of the child after its exec. With
 * `search` an exec fails before, as in a shell that goes through its path, and
 * the child, still in its parent's memory, makes and frees 7 blocks more.
 */
#define _DEFAULT_SOURCE
#include "target.h"
#include <sys/wait.h>

static NOINLINE void before_vfork(void)
{
	for (int i = 0; i < 11; i++)
		kept = malloc(43);
}

static NOINLINE void after_vfork_exec(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(47);
}

static NOINLINE void between_execs(void)
{
	execl("/no/such/program", "none", (char *)NULL);
	for (int i = 0; i < 7; i++) {
		kept = malloc(53);
		free(kept);
	}
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc == 2 && is(argv[1], "child")) {
		after_vfork_exec();
		return 0;
	}
	before_vfork();
	child = vfork();
	if (child == 0) {
		if (argc == 2 && is(argv[1], "search"))
			between_execs();
		execl("/proc/self/exe", "vfork_exec", "child", (char *)NULL);
		_exit(3);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
