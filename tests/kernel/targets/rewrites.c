/*
 * rewrites spawn|dlopen|two FIRST SECOND FILE: uses FILE, which holds first the bytes of FIRST, then, in the same inode,
 * those of SECOND. "ready" is said before, if there is a fifth argument.
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

static NOINLINE void rewrite(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	char part[4096];
	ssize_t got;

	if (in < 0 || out < 0)
		fail("open failed");
	while ((got = read(in, part, sizeof(part))) > 0)
		if (write(out, part, got) != got)
			fail("write failed");
	close(in);
	close(out);
}

static NOINLINE void tell(const char *what, int number)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %d\n", what, number);
	say(line);
}

static NOINLINE void spawn(char *path)
{
	char *arguments[] = {path, NULL};
	int status;
	pid_t pid;

	if (posix_spawn(&pid, path, NULL, NULL, arguments, environ) != 0 || waitpid(pid, &status, 0) != pid)
		fail("posix_spawn failed");
	tell("status", status);
}

static NOINLINE void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*version)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "version");

	if (version == NULL)
		fail("dlopen failed");
	tell("version", version());
	dlclose(library);
}

/* Two children load the first version, then both the second, which this process writes in between. */
static NOINLINE void two(char **names)
{
	int down[2][2], up[2];
	char byte = 0;

	if (pipe(up) != 0)
		fail("pipe failed");
	for (int i = 0; i < 2; i++) {
		if (pipe(down[i]) != 0)
			fail("pipe failed");
		if (fork() == 0) {
			load(names[2]);
			if (write(up[1], &byte, 1) != 1 || read(down[i][0], &byte, 1) != 1)
				_exit(5);
			load(names[2]);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		if (read(up[0], &byte, 1) != 1)
			fail("read failed");
	rewrite(names[1], names[2]);
	for (int i = 0; i < 2; i++) {
		int status;

		if (write(down[i][1], &byte, 1) != 1 || wait(&status) < 0)
			fail("wait failed");
		tell("status", status);
	}
}

int main(int argc, char **argv)
{
	char **names = argv + 2;

	if (argc < 5)
		fail("usage: rewrites spawn|dlopen|two FIRST SECOND FILE [ready]");
	if (argc > 5)
		ready();
	rewrite(names[0], names[2]);
	if (is(argv[1], "two")) {
		two(names);
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		if (is(argv[1], "spawn"))
			spawn(names[2]);
		else
			load(names[2]);
		if (i == 0)
			rewrite(names[1], names[2]);
	}
	return 0;
}
