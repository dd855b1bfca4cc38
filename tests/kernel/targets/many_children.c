/*
 * many_children N AT_ONCE [exec [ROWS]]: N children, AT_ONCE at a time, each of which makes 5 blocks and frees 2, then
 * the next AT_ONCE. With "exec" each is this program again; else forked only. With ROWS so many processes side by side
 * make N children each. Prints the microseconds of a child.
 */
#include "target.h"
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

static NOINLINE void in_child(void)
{
	void *blocks[5];

	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = malloc(61);
	free(blocks[1]);
	free(blocks[3]);
}

static void start(const char *program, int execs)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork failed");
	if (child != 0)
		return;
	if (execs) {
		execl(program, "many_children", "child", (char *)NULL);
		fail("exec failed");
	}
	in_child();
	_exit(0);
}

static void wait_for(int count)
{
	int status;

	for (int i = 0; i < count; i++)
		if (wait(&status) < 0 || status != 0)
			fail("a child failed");
}

static void row(int count, int at_once, int execs)
{
	for (int done = 0; done < count; done += at_once) {
		int batch = count - done < at_once ? count - done : at_once;

		for (int i = 0; i < batch; i++)
			start("/proc/self/exe", execs);
		wait_for(batch);
	}
}

static void rows(int rows, int count, int at_once, int execs)
{
	for (int i = 0; i < rows; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("fork failed");
		if (child == 0) {
			row(count, at_once, execs);
			_exit(0);
		}
	}
	wait_for(rows);
}

int main(int argc, char **argv)
{
	int count, at_once;
	struct timespec begin, end;
	char line[64];

	if (argc == 2 && is(argv[1], "child")) {
		in_child();
		_exit(0);
	}
	if (argc < 3)
		fail("usage: many_children N AT_ONCE [exec [ROWS]]");
	count = atoi(argv[1]);
	at_once = atoi(argv[2]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (argc == 5)
		rows(atoi(argv[4]), count, at_once, 1);
	else
		row(count, at_once, argc == 4);
	clock_gettime(CLOCK_MONOTONIC, &end);
	snprintf(line, sizeof(line), "%ld us\n",
		 ((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000) / count);
	say(line);
	return 0;
}
