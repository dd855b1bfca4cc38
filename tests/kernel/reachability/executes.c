/* Execs with blocks that are lost, that a global points at, and that are the new program's arguments.
 *
 * true: /bin/true, after a file that is not there.
 * nothing: a file that cannot be executed; then one block more is lost, and it exits.
 * child: a forked child of it does. */
#include <sys/wait.h>

#include "leftovers.h"

#define NOINLINE __attribute__((noinline, noipa))

struct node {
	char room[48];
};

MAKER(make_lost)
MAKER(make_held)

static struct node *volatile held;

static NOINLINE char **make_arguments(void)
{
	char **arguments = calloc(2, sizeof(*arguments));

	arguments[0] = strdup("true");
	return arguments;
}

static NOINLINE void execute(const char *path)
{
	char **arguments;

	make_lost();
	make_lost();
	held = make_held();
	arguments = make_arguments();
	wipe();
	execv("/bin/no such file", arguments);
	execv(path, arguments);
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "";

	if (!strcmp(how, "child")) {
		if (!fork())
			execute("/bin/true");
		wait(NULL);
		exit(0);
	}
	execute(strcmp(how, "true") ? "/etc/passwd" : "/bin/true");
	make_lost();
	wipe();
	clear_registers();
	exit(0);
}
