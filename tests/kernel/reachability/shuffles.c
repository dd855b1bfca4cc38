/* Blocks that threads move between memory and registers all the time, so that each is always held, and some that are
 * lost: shuffles. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "leftovers.h"

#define THREADS 3
#define PLACES 4096	/* words: of eight pages each */

struct node {
	struct node *next;
	char rest[56];
};

MAKER(make_held)
MAKER(make_in_register)
MAKER(make_lost)

static _Atomic(struct node *) places[PLACES];
static _Atomic(struct node *) narrow[THREADS];

/* One block is in a place or in a register; the other only ever in a register. */
static void *shuffle(void *number)
{
	_Atomic(struct node *) *place = &narrow[(long)number];
	unsigned random = (long)number * 2654435761u + 1;
	struct node *own = make_held(), *hidden = make_in_register();

	wipe();
	for (;;) {
		random = random * 1664525u + 1013904223u;
		own = atomic_exchange(&places[(random >> 8) % PLACES], own);
		own = atomic_exchange(place, own);
		__asm__ volatile("" : "+r"(own), "+r"(hidden) : : "memory");
	}
	return hidden;
}

static __attribute__((noinline)) void build(void)
{
	for (int i = 0; i < PLACES; i += 512)
		atomic_store(&places[i], make_held());
	for (int i = 0; i < 7; i++)
		make_lost();
}

int main(void)
{
	pthread_t thread;
	char byte;

	tell("begun");
	read(0, &byte, 1);
	build();
	wipe();
	clear_registers();
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread, 0, shuffle, (void *)i);
	wipe();
	answer("built");
	return 0;
}
