/*
 * paces blocks|threads|forks|libraries|execs: "ready", then turns of that, until stdin ends or says something else than
 * "t"; each "t" asks for a "done" when 41 more turns are. At the end: how many turns, and when the longest began and how
 * long it took, in microseconds of the monotonic clock.
 */
#include "target.h"
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#define ASKED 41

static NOINLINE void blocks(void)
{
	for (int i = 0; i < 17; i++) {
		void *volatile block = malloc(101 + i);

		free(block);
	}
}

static void *in_thread(void *nothing)
{
	blocks();
	return nothing;
}

static void threads(void)
{
	pthread_t thread[4];

	for (size_t i = 0; i < COUNT(thread); i++)
		if (pthread_create(&thread[i], NULL, in_thread, NULL) != 0)
			fail("no thread");
	for (size_t i = 0; i < COUNT(thread); i++)
		pthread_join(thread[i], NULL);
}

static void child(int execs)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		blocks();
		if (execs)
			execl("/proc/self/exe", "paces", "child", (char *)NULL);
		_exit(execs ? 4 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("the child failed");
}

static void forks(void)
{
	child(0);
}

static void execs(void)
{
	child(1);
}

static void libraries(void)
{
	void *library = dlopen("liba.so", RTLD_NOW);

	if (library == NULL)
		fail("dlopen failed");
	dlclose(library);
}

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void (*turn_of(const char *kind))(void)
{
	return is(kind, "blocks") ? blocks : is(kind, "threads") ? threads : is(kind, "forks") ? forks :
	       is(kind, "libraries") ? libraries : is(kind, "execs") ? execs : NULL;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	void (*turn)(void) = argc == 2 ? turn_of(argv[1]) : NULL;
	long turns = 0, until = 0, longest = 0, longest_began = 0;
	char line[96], byte;

	if (argc == 2 && is(argv[1], "child")) {
		blocks();
		return 0;
	}
	if (turn == NULL)
		fail("usage: paces blocks|threads|forks|libraries|execs");
	say("ready\n");
	for (long begin = now_us(), end; ; begin = end) {
		if (poll(&input, 1, 0) != 0) {
			if (read(STDIN_FILENO, &byte, 1) != 1 || byte != 't')
				break;
			until = turns + ASKED;
		}
		turn();
		end = now_us();
		if (end - begin > longest) {
			longest = end - begin;
			longest_began = begin;
		}
		if (++turns == until)
			say("done\n");
	}
	snprintf(line, sizeof(line), "%ld turns, longest began %ld took %ld us\n", turns, longest_began, longest);
	say(line);
	return 0;
}
