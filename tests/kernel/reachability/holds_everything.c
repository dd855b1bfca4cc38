/* Keeps all that it has: lists, a hash table of tagged pointers, and blocks that threads hand to each other at full
 * speed. holds_everything SEED [on]; its main thread ends it while the others go on, or waits with them, while two more
 * threads grow arrays of pointers by realloc and make and free what these point at. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 64
#define BUCKETS 257

struct node {
	struct node *next;
	uintptr_t tagged;
	char rest[40];
};

static _Atomic(struct node *) slots[SLOTS];
static uintptr_t table[BUCKETS];
static atomic_int started;

static struct node *made(void)
{
	return calloc(1, sizeof(struct node));
}

static void *hands_on(void *unused)
{
	unsigned at = (uintptr_t)unused;
	struct node *own = made();

	atomic_fetch_add(&started, 1);
	for (;;) {	/* each block is in a slot, or in the hands of one thread */
		own = atomic_exchange(&slots[at++ % SLOTS], own);
		if (!own)
			own = made();
	}
	return own;
}

static void *grows(void *unused)
{
	unsigned random = (uintptr_t)unused * 2654435761u + 1, held = 0;
	struct node **array = 0;

	atomic_fetch_add(&started, 1);
	for (;;) {
		unsigned wanted = 1 + (random = random * 1664525u + 1013904223u) % 509;

		while (held > wanted)
			free(array[--held]);
		array = realloc(array, wanted * sizeof(*array));
		while (held < wanted)
			array[held++] = made();
	}
	return array;
}

int main(int count, char **arguments)
{
	unsigned seed = count > 1 ? atoi(arguments[1]) : 1;
	pthread_t thread;

	alarm(900);	/* it is in nobody's way if who started it is killed */
	for (int i = 0; i < 1009; i++) {
		struct node *node = made();
		unsigned bucket = (i * 7919 + seed) % BUCKETS;

		node->tagged = table[bucket];
		table[bucket] = (uintptr_t)node | (i & 7) | (uintptr_t)(i & 0xff) << 56;
	}
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread, 0, hands_on, (void *)(i * 17 + seed));
	for (uintptr_t i = 0; count > 2 && i < 2; i++)
		pthread_create(&thread, 0, grows, (void *)(i + seed));
	while (started < (count > 2 ? 5 : 3) || !slots[seed % SLOTS])
		sched_yield();
	while (count > 2)
		pause();
	exit(0);
}
