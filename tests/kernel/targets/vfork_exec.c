/* vfork and exec: 11 blocks of the parent, 5 of the child after its exec. */
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
		execl("/proc/self/exe", "vfork_exec", "child", (char *)NULL);
		_exit(3);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
