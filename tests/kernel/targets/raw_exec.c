/* raw_exec PROGRAM...: leaves 3 blocks, then execs by the bare system call, past libc. */
#define _GNU_SOURCE
#include "target.h"
#include <sys/syscall.h>

extern char **environ;

static NOINLINE void before_exec(void)
{
	for (int i = 0; i < 3; i++)
		kept = malloc(37);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("usage: raw_exec PROGRAM...");
	before_exec();
	syscall(SYS_execve, argv[1], argv + 1, environ);
	fail("exec failed");
}
