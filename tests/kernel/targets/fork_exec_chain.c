/* fork_exec_chain N: leaves prime N blocks, forks, and the child execs fork_exec_chain N-1, down to 0. */
#include "target.h"
#include <sys/wait.h>

static const int primes[] = { 2, 3, 5, 7, 11, 13, 17, 19 };

static NOINLINE void leak_in_link(int count)
{
	for (int i = 0; i < count; i++)
		kept = malloc(53);
}

static NOINLINE void between_fork_and_exec(void)
{
	for (int i = 0; i < 3; i++)
		kept = malloc(59);
}

int main(int argc, char **argv)
{
	int depth = argc == 2 ? atoi(argv[1]) : 3, status;
	char next[2] = { (char)('0' + depth - 1), 0 };
	pid_t child;

	if (depth < 0 || depth >= (int)COUNT(primes))
		fail("usage: fork_exec_chain 0..7");
	leak_in_link(primes[depth]);
	if (depth == 0)
		return 0;
	child = fork();
	if (child < 0)
		fail("fork failed");
	if (child == 0) {
		between_fork_and_exec();
		execl("/proc/self/exe", "fork_exec_chain", next, (char *)NULL);
		fail("exec failed");
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
