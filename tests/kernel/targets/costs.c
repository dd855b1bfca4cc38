/* costs LIBRARY COUNT: nanoseconds of each of what a trace makes slower, the best of three rounds of COUNT (a tenth of
 * it for what starts a process or loads a library): lines `NAME NANOSECONDS`. */
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "refleak.h"

enum { ROUNDS = 3, FEWER = 10 };

struct counted {
	int refs;
};

static struct counted counted;
static const char *library;

static void pair(void)
{
	void *volatile block = malloc(101);
	free(block);
}

static void get_and_put(void)
{
	refcnt__get(&counted, refs);
	(void)refcnt__put(&counted, refs);
}

static void reap(pid_t child)
{
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(2);
}

static void fork_and_exit(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	reap(child);
}

static void spawn(void)
{
	char *words[] = {"/bin/true", NULL};
	pid_t child;

	if (posix_spawn(&child, words[0], NULL, NULL, words, NULL))
		exit(2);
	reap(child);
}

static void load(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle)
		exit(2);
	dlclose(handle);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void measure(const char *name, void (*work)(void), int count)
{
	double best = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = now(), each;

		for (int turn = 0; turn < count; turn++)
			work();
		each = (now() - begin) / count;
		best = each < best ? each : best;
	}
	printf("%s %.0f\n", name, best);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0, fewer = count / FEWER;

	if (fewer < 1)
		return 2;
	library = argv[1];
	refcnt__init(&counted, refs, 1);
	measure("pair", pair, count);
	measure("get+put", get_and_put, count);
	measure("fork", fork_and_exit, fewer);
	measure("exec", spawn, fewer);
	measure("dlopen", load, fewer);
	refcnt__delete(&counted);
	return 0;
}
