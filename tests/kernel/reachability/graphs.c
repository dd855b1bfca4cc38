/*
 * Build the blocks, pointers and roots that a file lists, and exit. Each block
 * has a function of its own that makes it; addresses are kept inverted. Compiled
 * with ARENAS, two threads make two blocks of three, in arenas of their own.
 *
 *	b BLOCK SIZE			make a block
 *	e BLOCK OFFSET TO PLUS		write a pointer to another one, plus a number, into it
 *	r KIND SLOT TO PLUS		write it to a root: a global, a mapping, storage or a stack
 *	f BLOCK				free it, with what is in it
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 60
#define SLOTS 16
#define NOINLINE __attribute__((noinline))

#ifdef LIBRARY
static __thread void *volatile slots[SLOTS];
void *volatile *library_slots(void) { return slots; }
#else
#define MAKER(n) NOINLINE static void *make_##n(size_t size) { void *block = malloc(size); return memset(block, 0, size); }
#define TEN(do, n) do(n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7) do(n##8) do(n##9)
#define ALL(do) TEN(do, 1) TEN(do, 2) TEN(do, 3) TEN(do, 4) TEN(do, 5) TEN(do, 6)
ALL(MAKER)
#define NAME(n) make_##n,
static void *(*const makers[MOST])(size_t) = { ALL(NAME) };

static uintptr_t inverted[MOST];
static void *volatile globals[SLOTS];
static __thread void *volatile storage[SLOTS];
static void *volatile *roots[128];
static int ready[2];

static void *waits(void *unused)
{
	void *volatile own[SLOTS] = { 0 };

	roots['w'] = own;
	roots['v'] = storage;
	write(ready[1], "", 1);
	for (;;)
		pause();
	return own[0];
}

NOINLINE static void scrub(void)
{
	volatile char area[65536];

	memset((void *)area, 0, sizeof(area));
}

NOINLINE static void make(long block, long size)
{
	inverted[block] = ~(uintptr_t)makers[block](size);
}

#ifdef ARENAS
static struct maker {
	int asked[2], answered[2];
} others[2];

static void *makes_blocks(void *given)
{
	struct maker *maker = given;
	long wanted[2];
	char byte = 0;

	while (read(maker->asked[0], wanted, sizeof(wanted)) == sizeof(wanted)) {
		make(wanted[0], wanted[1]);
		scrub(); /* read and write have room on the stack that they do not use */
		write(maker->answered[1], &byte, 1);
	}
	return 0;
}

static void start_makers(void)
{
	for (int i = 0; i < 2; i++) {
		pthread_t thread;

		pipe(others[i].asked);
		pipe(others[i].answered);
		pthread_create(&thread, 0, makes_blocks, &others[i]);
	}
}

static void make_by_one(long block, long size)
{
	struct maker *maker = &others[block % 3];
	long wanted[2] = { block, size };
	char byte;

	if (block % 3 == 2) {
		make(block, size);
		return;
	}
	write(maker->asked[1], wanted, sizeof(wanted));
	read(maker->answered[0], &byte, 1);
}
#else
#define start_makers()
#define make_by_one make
#endif

NOINLINE static void build(char *text, void *volatile *library)
{
	char *at = text;

	while (*at) {
		char what = *at++, kind = 0;
		long given[4] = { 0 };
		int number = 0;

		if (what == 'r')
			kind = *++at, at++;
		while (*at && *at != '\n')
			given[number++] = strtoul(at, &at, 10);
		while (*at == '\n')
			at++;
		if (what == 'b')
			make_by_one(given[0], given[1]);
		else if (what == 'e')
			*(uintptr_t *)(~inverted[given[0]] + given[1]) = ~inverted[given[2]] + given[3];
		else if (what == 'r')
			roots[(int)kind][given[0]] = (void *)(~inverted[given[1]] + given[2]);
		else
			free((void *)~inverted[given[0]]);
	}
}

int main(int count, char **arguments)
{
	static char text[1 << 16];
	void *volatile locals[SLOTS] = { 0 };
	pthread_t thread;
	char byte;
	int file = open(arguments[1], O_RDONLY);

	read(file, text, sizeof(text) - 1);
	pipe(ready);
	start_makers();
	pthread_create(&thread, 0, waits, 0);
	read(ready[0], &byte, 1);
	roots['g'] = globals;
	roots['t'] = storage;
	roots['s'] = locals;
	roots['m'] = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (count > 2)
		roots['d'] = ((void *volatile *(*)(void))dlsym(dlopen(arguments[2], RTLD_NOW), "library_slots"))();
	build(text, 0);
	scrub();
	exit(locals[0] == (void *)1);
}
#endif
