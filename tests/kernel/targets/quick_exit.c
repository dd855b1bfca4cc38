/* 29 blocks, then the end by exit, quick_exit or _exit. */
#include "target.h"

static NOINLINE void before_exit(void)
{
	for (int i = 0; i < 29; i++)
		kept = malloc(83);
}

int main(int argc, char **argv)
{
	before_exit();
	if (argc == 2 && is(argv[1], "exit"))
		exit(5);
	if (argc == 2 && is(argv[1], "quick_exit"))
		quick_exit(5);
	if (argc == 2 && is(argv[1], "_exit"))
		_exit(5);
	fail("usage: quick_exit exit|quick_exit|_exit");
}
