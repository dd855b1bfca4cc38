/* Blocks that are in vector registers only: a thread keeps 5 in the two halves of three of them, and gives its others up;
 * another swaps and moves pointers as memmove and std::swap do, so that at some instructions a register has the only one.
 * vectors, which reads bytes: the first begins, each further one is answered. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leftovers.h"

#define MOVED 13

struct node {
	struct node *next;
	char rest[56];
};

MAKER(make_held)
MAKER(make_moved)
MAKER(make_lost)

static struct node *volatile table[MOVED + 1];
static volatile int ready;

static __attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < 7; i++)
		make_lost();
}

static void *keep(void *unused)
{
	struct node *kept[5];

	for (int i = 0; i < 5; i++)
		kept[i] = make_held();
	__asm__ volatile("movq %0, %%xmm3; movhps %1, %%xmm3" : : "r"(kept[0]), "m"(kept[1]));
	__asm__ volatile("movq %0, %%xmm9; movhps %1, %%xmm9" : : "r"(kept[2]), "m"(kept[3]));
	__asm__ volatile("movq %0, %%xmm15" : : "r"(kept[4]));
	__asm__ volatile("mov %0, %%rdi; xor %%eax, %%eax; mov $5, %%ecx; rep stosq; xor %%edi, %%edi; xor %%edx, %%edx;"
			 "xor %%esi, %%esi; xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d;"
			 "movl $1, %1; 1: pause; jmp 1b" : : "r"(kept), "m"(ready) : "memory", "rax", "rcx", "rdi");
	return unused;
}

static void *move(void *unused)
{
	struct node **places = (struct node **)table;

	for (;;) {
		memmove(places + 1, places, MOVED * sizeof(*places));
		places[0] = NULL;
		memmove(places, places + 1, MOVED * sizeof(*places));
		places[MOVED] = NULL;
	}
	return unused;
}

int main(void)
{
	pthread_t thread;
	char byte;

	tell("begun");
	read(0, &byte, 1);
	lose();
	for (int i = 0; i < MOVED; i++)
		table[i] = make_moved();
	wipe();
	clear_registers();
	pthread_create(&thread, 0, keep, NULL);
	while (!ready)
		;
	pthread_create(&thread, 0, move, NULL);
	wipe();
	answer("built");
	return 0;
}
