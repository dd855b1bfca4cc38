/*
 * late_children HOW: twenty children that end at once; then one more, which by HOW
 *   outlives   ends its first thread; another one makes and frees 40 blocks later, and makes 7
 *   races      the same, but the other one makes and frees blocks while the first one ends
 *   executes   executes itself from another thread, and makes 7 blocks there
 *   raw        is made without libc's fork, makes and frees blocks at once, and 7 blocks later
 *   unforeseen the same, by a call whose number is known only at run time
 *   spawns     spawns itself by posix_spawn twelve times, each making 7 blocks
 *   vforks     makes 7 blocks in a vfork child, frees 2 of them in the parent, and forks one that makes 7
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char *program;
static volatile long number = SYS_clone;
static void *blocks[7];

static NOINLINE void in_child(void)
{
	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = malloc(61);
	memset(blocks, 0, sizeof(blocks));
}

static NOINLINE void turn(void)
{
	kept = malloc(33);
	free(kept);
}

static void *goes_on(void *unused)
{
	if (unused)
		usleep(100000); /* the first thread has ended */
	for (int i = 0; i < (unused ? 40 : 20000); i++)
		turn();
	usleep(300000);
	in_child();
	_exit(0);
	return unused;
}

static void *executes(void *unused)
{
	execl(program, "late_children", "child", (char *)NULL);
	fail("exec failed");
	return unused;
}

static void ends(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		fail("a child failed");
}

static void in_thread(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, body, argument);
}

static void spawn(void)
{
	char *arguments[] = { "late_children", "child", NULL };
	pid_t child;

	if (posix_spawn(&child, program, NULL, NULL, arguments, environ))
		fail("spawn failed");
	ends(child);
}

static NOINLINE void vforks(void)
{
	pid_t child = vfork();

	if (child == 0) {
		for (size_t i = 0; i < COUNT(blocks); i++)
			blocks[i] = malloc(61);
		_exit(0);
	}
	ends(child);
	free(blocks[0]);
	free(blocks[1]);
	memset(blocks, 0, sizeof(blocks));
	child = fork();
	if (child == 0) {
		in_child();
		_exit(0);
	}
	ends(child);
}

int main(int argc, char **argv)
{
	pid_t child;

	program = argv[0];
	if (argc < 2)
		return 1;
	if (!strcmp(argv[1], "child")) {
		in_child();
		return 0;
	}
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (child == 0)
			_exit(0);
		ends(child);
		usleep(40000);
	}
	if (!strcmp(argv[1], "spawns")) {
		for (int i = 0; i < 12; i++)
			spawn();
		return 0;
	}
	if (!strcmp(argv[1], "vforks")) {
		vforks();
		return 0;
	}
	if (!strcmp(argv[1], "unforeseen"))
		child = (pid_t)syscall(number, SIGCHLD, 0, 0, 0, 0);
	else
		child = !strcmp(argv[1], "raw") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (child == 0) {
		if (!strcmp(argv[1], "raw") || !strcmp(argv[1], "unforeseen")) {
			turn();
			usleep(500000);
			in_child();
			_exit(0);
		}
		if (!strcmp(argv[1], "executes"))
			in_thread(executes, NULL);
		else
			in_thread(goes_on, strcmp(argv[1], "races") ? argv : NULL);
		if (strcmp(argv[1], "executes"))
			pthread_exit(NULL);
		pause();
	}
	ends(child);
	return 0;
}
