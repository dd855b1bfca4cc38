/* shell_child system|popen: has a shell run this program again as "child", which leaves 5 blocks; 11 stay here. */
#include "target.h"
#include <stdio.h>

static NOINLINE void before_shell(void)
{
	for (int i = 0; i < 11; i++)
		kept = malloc(43);
}

static NOINLINE void below_shell(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(47);
}

int main(int argc, char **argv)
{
	char self[512], command[600];
	ssize_t length;
	FILE *pipe;

	if (argc == 2 && is(argv[1], "child")) {
		below_shell();
		return 0;
	}
	if (argc != 2)
		fail("usage: shell_child system|popen");
	before_shell();
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		fail("readlink failed");
	self[length] = 0;
	snprintf(command, sizeof(command), "'%s' child; exit $?", self);
	if (is(argv[1], "system"))
		return system(command) != 0;
	pipe = popen(command, "r");
	return pipe == NULL || pclose(pipe) != 0;
}
