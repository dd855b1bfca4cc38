/* posix_spawn: 11 blocks of the parent, 5 of what it spawns. */
#include "target.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static NOINLINE void before_spawn(void)
{
	for (int i = 0; i < 11; i++)
		kept = malloc(43);
}

static NOINLINE void in_spawned(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(47);
}

int main(int argc, char **argv)
{
	char name[] = "posix_spawn", child_word[] = "child";
	char *child_argv[] = { name, child_word, NULL };
	int status;
	pid_t child;

	if (argc == 2 && is(argv[1], "child")) {
		in_spawned();
		return 0;
	}
	before_spawn();
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, child_argv, environ) != 0)
		fail("posix_spawn failed");
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
