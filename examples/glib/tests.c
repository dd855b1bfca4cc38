/*
 * Some of a library's own tests in one program: PROGRAM NAME [OPTION...], with the options of GLib's test programs.
 * TESTS names them: TEST(mainloop) TEST(bytes), each with a main() of its own, mainloop_main.
 */
#include <stdio.h>
#include <string.h>

typedef int program(int, char **);
#define TEST(name) program name##_main;
TESTS
#undef TEST

static const struct {
	const char *name;
	program *main;
} tests[] = {
#define TEST(name) {#name, name##_main},
	TESTS
};

int main(int count, char **arguments)
{
	for (size_t i = 0; count > 1 && i < sizeof(tests) / sizeof(*tests); i++)
		if (strcmp(arguments[1], tests[i].name) == 0)
			return tests[i].main(count - 1, arguments + 1);
	fprintf(stderr, "usage: %s NAME [OPTION...]\n", arguments[0]);
	return 2;
}
