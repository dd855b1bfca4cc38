/* exec with 17 live blocks; the new program leaves 7. */
#include "target.h"

static NOINLINE void before_exec(void)
{
	for (int i = 0; i < 17; i++)
		kept = malloc(61);
}

static NOINLINE void after_exec(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(71);
}

int main(int argc, char **argv)
{
	if (argc == 2 && is(argv[1], "after")) {
		after_exec();
		return 0;
	}
	before_exec();
	execl("/proc/self/exe", "exec_live", "after", (char *)NULL);
	fail("exec failed");
}
