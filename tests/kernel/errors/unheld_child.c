/*
 * A child by a system call whose number does not stand in the code, which no
 * tracer holds, then one wrong free: in the maker, or in the child, of a block
 * that is the child's own.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static void *volatile lost;
static volatile long number = SYS_clone;

NOINLINE static void free_twice(void *block)
{
	free(block);
	free(block);
}

NOINLINE static void lose(void)
{
	lost = malloc(77);
	lost = 0;
}

int main(int count, char **arguments)
{
	const char *who = arguments[count - 1];
	int child = syscall(number, SIGCHLD, 0, 0, 0, 0);

	if (child == 0) {
		if (!strcmp(who, "child"))
			free_twice(malloc(100));
		_exit(0);
	}
	waitpid(child, 0, 0);
	lose();
	if (!strcmp(who, "maker"))
		free_twice(malloc(100));
	return 0;
}
