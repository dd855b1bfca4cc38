/* Some of GLib's own tests in one program: glib-tests NAME [OPTION...], with the options of GLib's test programs. */
#include <stdio.h>
#include <string.h>

typedef int program(int, char **);
program mainloop_main, bytes_main, gvariant_main, regex_main, asyncqueue_main, keyfile_main, tree_main;

static const struct {
	const char *name;
	program *main;
} tests[] = {
	{"mainloop", mainloop_main}, {"bytes", bytes_main}, {"gvariant", gvariant_main},
	{"regex", regex_main}, {"asyncqueue", asyncqueue_main}, {"keyfile", keyfile_main}, {"tree", tree_main},
};

int main(int count, char **arguments)
{
	for (size_t i = 0; count > 1 && i < sizeof(tests) / sizeof(*tests); i++)
		if (strcmp(arguments[1], tests[i].name) == 0)
			return tests[i].main(count - 1, arguments + 1);
	fprintf(stderr, "usage: %s NAME [OPTION...]\n", arguments[0]);
	return 2;
}
