/* A process that runs on: blocks from before a byte is read, and from after it. lives_on [THREADS [BYTES]] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leftovers.h"

struct node {
	struct node *next;
	char rest[56];
};

struct node *older, *list;
void *large;

MAKER(make_older)
MAKER(make_held)
MAKER(make_by_older)
MAKER(make_on_stack)
MAKER(make_lost)

static int ready[2], wait_here[2];

static __attribute__((noinline)) void build(void)
{
	struct node **freed;

	older->next = make_by_older();
	for (int i = 0; i < 13; i++) {
		struct node *made = make_held();

		made->next = list;
		list = made;
	}
	for (int i = 0; i < 7; i++)
		make_lost();
	freed = malloc(400);
	freed[20] = make_lost();
	free(freed);
}

static void *hold(void *unused)
{
	struct node *volatile own = make_on_stack();
	char byte;

	write(ready[1], "", 1);
	read(wait_here[0], &byte, 1);
	return own ? unused : 0;
}

static void *churn(void *unused)
{
	void *block = malloc(100);

	for (size_t size = 100;; size = size * 5 % 3001 + 16) {
		block = realloc(block, size);
		memset(block, 0, size);
	}
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	char byte;

	pipe(ready);
	pipe(wait_here);
	older = make_older();
	if (count > 2)
		large = memset(malloc(atol(arguments[2])), 1, atol(arguments[2]));
	for (int i = count > 1 ? atoi(arguments[1]) : 0; i > 0; i--)
		pthread_create(&thread, 0, churn, 0);
	tell("begun");
	read(0, &byte, 1);
	build();
	pthread_create(&thread, 0, hold, 0);
	read(ready[0], &byte, 1);
	wipe();
	answer("built");
	return 0;
}
