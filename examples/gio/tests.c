/* Some of GIO's own tests in one program: gio-tests NAME [OPTION...], with the options of GLib's test programs. */
#include <stdio.h>
#include <string.h>

#define TESTS                                                                                                          \
	TEST(task)                                                                                                     \
	TEST(cancellable)                                                                                              \
	TEST(memory_input_stream)                                                                                      \
	TEST(memory_output_stream)                                                                                     \
	TEST(data_input_stream)                                                                                        \
	TEST(buffered_input_stream)                                                                                    \
	TEST(buffered_output_stream)                                                                                   \
	TEST(filter_streams)                                                                                           \
	TEST(converter_stream)                                                                                         \
	TEST(async_splice_output_stream)                                                                               \
	TEST(async_close_output_stream)                                                                                \
	TEST(io_stream)                                                                                                \
	TEST(sleepy_stream)                                                                                            \
	TEST(g_icon)                                                                                                   \
	TEST(glistmodel)                                                                                               \
	TEST(permission)                                                                                               \
	TEST(simple_async_result)                                                                                      \
	TEST(gdbus_message)                                                                                            \
	TEST(unix_streams)                                                                                             \
	TEST(socket)                                                                                                   \
	TEST(contexts)                                                                                                 \
	TEST(simple_proxy)

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
