/* Everything is held, while other threads are held in the kernel again and again: churns KINDS, letters of
 * l: load and unload libraries, f: fork, e: exec. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leftovers.h"

extern char **environ;

struct node {
	struct node *next;
	char rest[56];
};

struct node *list;

MAKER(make_held)
MAKER(make_lost)

static void *loads(void *unused)
{
	for (;;) {
		void *library = dlopen("libutil.so.1", RTLD_NOW);

		if (library)
			dlclose(library);
	}
	return unused;
}

static void *forks(void *unused)
{
	for (;;) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, 0, 0);
	}
	return unused;
}

static void *execs(void *unused)
{
	char *words[] = {"true", 0};

	for (;;) {
		pid_t child;

		posix_spawn(&child, "/bin/true", 0, 0, words, environ);
		waitpid(child, 0, 0);
	}
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	char byte;

	tell("begun");
	read(0, &byte, 1);
	for (int i = 0; i < 13; i++) {
		struct node *made = make_held();

		made->next = list;
		list = made;
	}
	for (int i = 0; i < 7; i++)
		make_lost();
	wipe();
	for (char *kind = count > 1 ? arguments[1] : ""; *kind; kind++)
		pthread_create(&thread, 0, *kind == 'l' ? loads : *kind == 'f' ? forks : execs, 0);
	answer("built");
	return 0;
}
