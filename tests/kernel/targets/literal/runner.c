/* Forks, and the child execs PROGRAM, whose name stands in a page that the child has never touched. */
#include "target.h"
#include <sys/wait.h>

int main(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(PROGRAM, PROGRAM, NULL);
		_exit(9);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 8 : WEXITSTATUS(status);
}
