/* A forked child loads a library that its parent never had: liba.so, whose constructor leaves 13 blocks. */
#include "target.h"
#include <dlfcn.h>
#include <sys/wait.h>

int main(void)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("fork failed");
	if (child == 0)
		_exit(dlopen("liba.so", RTLD_NOW) == NULL);
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	return 0;
}
