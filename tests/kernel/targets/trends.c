/*
 * 60 rounds of 50 ms by the clock, the last of 25. At the start 7 blocks that stay (one_off), and 5 of which 3 go (few). In each round: 1 block that stays and 2
 * that go, one at either of two places (grow); 4 blocks into a queue of 8, which frees the 4 oldest once it is full
 * (queue); one counted object that stays and one that goes.
 */
#include "refleak.h"
#include "target.h"

#include <time.h>

#define ROUNDS 60
#define QUEUE 8

struct thing {
	int refs;
};

static void *queue[QUEUE];
static unsigned pushed;
static struct thing things[2 * ROUNDS];

static NOINLINE void one_off(void)
{
	for (int i = 0; i < 7; i++)
		kept = malloc(101);
}

static NOINLINE void drop_here(void *block)
{
	free(block);
}

static NOINLINE void drop_there(void *block)
{
	free(block);
}

static NOINLINE void few(void)
{
	void *blocks[5];

	for (volatile int i = 0; i < 5; i++)
		blocks[i] = malloc(71);
	for (volatile int i = 0; i < 3; i++)
		drop_here(blocks[i]);
	kept = blocks[3];
}

static NOINLINE void *make(void)
{
	return malloc(53);
}

static NOINLINE void grow(void)
{
	void *blocks[3];

	for (volatile int i = 0; i < 3; i++)	/* not unrolled: one stack */
		blocks[i] = make();
	kept = blocks[0];
	drop_here(blocks[1]);
	drop_there(blocks[2]);
}

static NOINLINE void push(void)
{
	void **place = &queue[pushed++ % QUEUE];

	if (*place)
		drop_here(*place);
	*place = malloc(37);
}

static NOINLINE void count(int round)
{
	for (volatile int i = 0; i < 2; i++)
		refcnt__init_as(&things[2 * round + i], refs, 1, "thing");
	__refcnt__put(&things[2 * round].refs, &things[2 * round], "thing");
}

int main(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	one_off();
	few();
	for (int round = 0; round < ROUNDS; round++) {
		grow();
		for (volatile int i = 0; i < 4; i++)
			push();
		count(round);
		next.tv_nsec += (round < ROUNDS - 1 ? 50 : 25) * 1000 * 1000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}
