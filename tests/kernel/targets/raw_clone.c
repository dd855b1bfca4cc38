/* A child made by the bare system call, past libc, whose number nobody can read in the code: it makes 5 blocks at once.
 * The parent leaves 3.
 * raw_clone PROGRAM: the child executes that then. */
#define _GNU_SOURCE
#include "target.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile long number = SYS_clone;

static NOINLINE void in_parent(void)
{
	for (int i = 0; i < 3; i++)
		kept = malloc(37);
}

static NOINLINE void in_raw_child(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(41);
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	in_parent();
	child = (pid_t)syscall(number, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		fail("clone failed");
	if (child == 0) {
		in_raw_child();
		if (argc > 1)
			execl(argv[1], argv[1], (char *)NULL);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
