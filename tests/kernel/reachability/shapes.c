/* Blocks in every way that something may still point at them: shapes CASE. Each group has a maker of its own; counts
 * are primes. Nothing of a builder is left on the stack: what it worked in is overwritten. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leftovers.h"

struct node {
	struct node *next, *other;
	char rest[32];
};

MAKER(make_held)
MAKER(make_lost)
MAKER(make_below)
MAKER(make_leader)
MAKER(make_in_cycle)
MAKER(make_inside)

static struct node *volatile global;
static __thread struct node *volatile local;
static void *volatile pool;

static __attribute__((noinline)) void list(void)
{
	for (int i = 0; i < 13; i++) {
		struct node *made = make_held();

		made->next = global;
		global = made;
	}
}

static __attribute__((noinline)) void tree(void)
{
	struct node *top = make_leader();

	top->next = make_below();
	top->other = make_below();
	top->next->next = make_below();
	top->next->other = make_below();
	top->other->next = make_below();
	for (int i = 0; i < 3; i++)
		make_lost();
}

static __attribute__((noinline)) void cycles(void)
{
	struct node *ring = make_in_cycle(), *second;

	ring->next = make_in_cycle();
	ring->next->next = make_in_cycle();
	ring->next->next->next = ring;
	second = make_in_cycle();	/* one that another cycle points into */
	second->next = make_in_cycle();
	second->next->next = second;
	ring->other = second;
	second->other = make_below();
}

static __attribute__((noinline)) void interior(void)
{
	struct node *made = make_inside();

	global = (struct node *)((char *)made + 16);
	made->next = make_below();
	made->other = (struct node *)((char *)make_below() + 24);
}

static __attribute__((noinline)) void in_local(void)
{
	local = make_held();
	local->next = make_held();
}

static __attribute__((noinline)) void in_pool(void)
{
	struct node **slots = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 7; i++)
		slots[1000 + i] = make_held();
	pool = slots;
}

static __attribute__((noinline)) void in_freed(void)
{
	struct node **freed = malloc(4000);

	freed[100] = make_lost();
	free(freed);
}

static int ready[2];

static void *hold(void *unused)
{
	struct node *volatile own = make_held();

	local = make_held();
	(void)unused;
	write(ready[1], "", 1);
	for (;;)
		pause();
	return own;
}

static __attribute__((noinline)) void on_thread(void)
{
	pthread_t thread;
	char byte;

	pipe(ready);
	pthread_create(&thread, 0, hold, 0);
	read(ready[0], &byte, 1);
}

static void *end_here(void *unused)
{
	struct node *volatile own = make_held();

	(void)unused;
	own->next = make_held();
	make_lost();
	clear_registers();
	exit(0);
	return own;
}

static __attribute__((noinline)) void in_child(void)
{
	int status;

	list();	/* inherited by the child, whose own block hangs at its end */
	if (fork() == 0) {
		struct node *last = global;

		while (last->next)
			last = last->next;
		last->other = make_inside();
		make_lost();
		last = 0;
		wipe();
		clear_registers();
		_exit(0);
	}
	wait(&status);
}

int main(int count, char **arguments)
{
	const char *shape = count > 1 ? arguments[1] : "";
	struct node *volatile on_stack = 0;
	pthread_t thread;

	if (!strcmp(shape, "list"))
		list();
	else if (!strcmp(shape, "tree"))
		tree();
	else if (!strcmp(shape, "cycles"))
		cycles();
	else if (!strcmp(shape, "interior"))
		interior();
	else if (!strcmp(shape, "local"))
		in_local();
	else if (!strcmp(shape, "pool"))
		in_pool();
	else if (!strcmp(shape, "freed"))
		in_freed();
	else if (!strcmp(shape, "thread"))
		on_thread();
	else if (!strcmp(shape, "child"))
		in_child();
	else if (!strcmp(shape, "stack")) {
		on_stack = make_held();
		on_stack->next = make_below();
	} else if (!strcmp(shape, "all")) {
		list(), tree(), cycles(), in_local(), in_pool(), in_freed();
	} else if (!strcmp(shape, "ended-by-thread")) {
		pthread_create(&thread, 0, end_here, 0);
		for (;;)
			pause();
	} else if (!strcmp(shape, "quick")) {
		list(), tree(), wipe(), clear_registers();
		quick_exit(0);
	} else if (!strcmp(shape, "abort")) {
		list(), tree(), wipe(), clear_registers();
		abort();
	} else if (!strcmp(shape, "killed")) {
		tree();
		kill(getpid(), 9);
	}
	wipe();
	clear_registers();
	exit(on_stack == (void *)1);
}
