/* What the programs of these tests share: makers, one for each group of blocks, and means to leave no pointer to a block
 * where none is meant to be. */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function that makes a `struct node`. */
#define MAKER(name) \
	static __attribute__((noinline)) struct node *name(void) \
	{ \
		struct node *made = calloc(1, sizeof(struct node)); \
		__asm__ volatile("" : "+r"(made)); \
		return made; \
	}

/* Nothing of the calls before is left on the stack. */
static __attribute__((noinline, unused)) void wipe(void)
{
	char room[16384];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory", "rbx", "r12", "r13", "r14", "r15");
}

/* Nor in the registers that calls keep. */
static __attribute__((noinline, unused)) void clear_registers(void)
{
	__asm__ volatile("xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d"
			 : : : "rbx", "r12", "r13", "r14", "r15");
}

/* Say a line at once. */
static __attribute__((noinline, unused)) void tell(const char *line)
{
	puts(line);
	fflush(stdout);
}

/* Say a line, and that the program lives for each byte that comes, up to the end of input. */
static __attribute__((noinline, unused)) void answer(const char *line)
{
	char byte;

	tell(line);
	while (read(0, &byte, 1) == 1)
		tell("alive");
}

#endif
