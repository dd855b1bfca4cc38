/* Blocks and counted objects with a known holder each: holders CASE. Nothing of a builder is left on the stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "leftovers.h"
#include "refleak.h"

struct item {
	int refs;
	char rest[76];
};

struct owner {
	long number;
	struct item *first, *second;
	char rest[200];
};

struct table {
	long size;
	struct owner *slots[53];
};

struct {
	struct { struct item *item; struct table table; } host;
	struct item *spare;
} machines;
struct item *bare[31];
__thread struct item *local[2];
void **mapped;

static __attribute__((noinline)) struct item *make_item(void)
{
	struct item *made = calloc(1, sizeof(*made));

	__asm__ volatile("" : "+r"(made));
	return made;
}

static __attribute__((noinline)) struct item *make_other(void)
{
	struct item *made = calloc(1, sizeof(*made));

	__asm__ volatile("" : "+r"(made));
	return made;
}

static __attribute__((noinline)) struct item *make_counted(int count)
{
	struct item *made = calloc(1, sizeof(*made));

	refcnt__init(made, refs, 1);
	while (--count > 0)
		refcnt__get(made, refs);
	return made;
}

static __attribute__((noinline)) struct owner *make_owner(void)
{
	struct owner *made = calloc(1, sizeof(*made));

	__asm__ volatile("" : "+r"(made));
	return made;
}

static __attribute__((noinline)) void *make_raw(size_t size)
{
	void *made = calloc(1, size);

	__asm__ volatile("" : "+r"(made));
	return made;
}

static __attribute__((noinline)) void in_globals(void)
{
	machines.host.item = make_item();
	for (int i = 0; i < 31; i++)
		bare[i] = make_other();
}

/* 47 items in members of blocks that a table holds, 23 in blocks that no struct describes. */
static __attribute__((noinline)) void in_blocks(void)
{
	for (int i = 0; i < 47; i++) {
		machines.host.table.slots[i] = make_owner();
		machines.host.table.slots[i]->second = make_item();
	}
	mapped = make_raw(1000);
	for (int i = 0; i < 23; i++) {
		mapped[i] = make_raw(520);
		((void **)mapped[i])[7] = make_other();
	}
}

static __attribute__((noinline)) void in_storage(void)
{
	local[1] = make_item();
}

static __attribute__((noinline)) void in_mapping(void)
{
	mapped = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 7; i++)
		mapped[1000 + i] = make_item();
}

static __attribute__((noinline)) void in_freed(void)
{
	struct owner *gone = make_owner();

	gone->second = make_item();
	free(gone);
}

static int ready[2];

static __attribute__((noinline)) void wait_here(void)
{
	write(ready[1], "", 1);
	for (;;)
		pause();
}

static __attribute__((noinline)) void keep_on_stack(void)
{
	struct item *volatile own = make_item();

	wait_here();
	own->refs++;
}

static void *run(void *unused)
{
	keep_on_stack();
	return unused;
}

static __attribute__((noinline)) void on_thread(void)
{
	pthread_t thread;
	char byte;

	pipe(ready);
	pthread_create(&thread, 0, run, 0);
	read(ready[0], &byte, 1);
}

static void *end_soon(void *unused)
{
	void *volatile room[64] = { 0 };

	room[5] = make_other();
	return unused;
}

static __attribute__((noinline)) void on_ended_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, end_soon, 0);
	pthread_join(thread, 0);
}

/* Three objects that are held once by two references, two that nothing holds, one with as many holders as count. */
static __attribute__((noinline)) void counted(void)
{
	for (int i = 0; i < 3; i++) {
		machines.host.table.slots[i] = make_owner();
		machines.host.table.slots[i]->first = make_counted(2);
	}
	make_counted(1);
	make_counted(1);
	machines.spare = make_counted(2);
	bare[0] = machines.spare;
}

/* An object that is freed past its counter, and two that still point at it, one of them freed as well. */
static __attribute__((noinline)) void gone(void)
{
	struct owner *owner = make_owner();
	struct item *made = make_counted(1);

	machines.spare = made;
	owner->second = made;
	free(made);
	free(owner);
}

int main(int count, char **arguments)
{
	const char *shape = count > 1 ? arguments[1] : "";

	if (!strcmp(shape, "globals"))
		in_globals();
	else if (!strcmp(shape, "blocks"))
		in_blocks();
	else if (!strcmp(shape, "storage"))
		in_storage();
	else if (!strcmp(shape, "mapping"))
		in_mapping();
	else if (!strcmp(shape, "freed"))
		in_freed();
	else if (!strcmp(shape, "thread"))
		on_thread();
	else if (!strcmp(shape, "ended-thread"))
		on_ended_thread();
	else if (!strcmp(shape, "counted"))
		counted();
	else if (!strcmp(shape, "gone"))
		gone();
	wipe();
	clear_registers();
	exit(0);
}
