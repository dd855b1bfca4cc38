/*
 * Leave BLOCKS blocks alive that were allocated from STACKS different stacks.
 * usage: many_stacks BLOCKS STACKS
 * Prints the monotonic clock (ns) at the start of main and at its end. A stack
 * is a number, and its bits say which of two functions calls on at each level
 * (noipa: the compiler would make one of two that do the same).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LEVELS 20

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void descend(unsigned path, int level);

__attribute__((noipa)) static void even(unsigned path, int level)
{
	descend(path, level);
	__asm__ volatile("" : : : "memory");	/* no tail call: the frame must stay */
}

__attribute__((noipa)) static void odd(unsigned path, int level)
{
	descend(path, level);
	__asm__ volatile("" : : : "memory");
}

__attribute__((noipa)) static void descend(unsigned path, int level)
{
	if (level == 0) {
		void *volatile block = malloc(24);

		(void)block;
	} else if (path & 1) {
		odd(path >> 1, level - 1);
	} else {
		even(path >> 1, level - 1);
	}
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	long long started = now();
	long blocks, stacks;

	if (argc != 3)
		return 2;
	blocks = atol(argv[1]);
	stacks = atol(argv[2]);
	for (long i = 0; i < blocks; i++)
		descend(i % stacks, LEVELS);
	printf("%lld %lld\n", started, now());
	return 0;
}
