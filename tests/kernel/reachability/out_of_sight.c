/* Blocks that are held where the process itself cannot look: in the kernel, for epoll(7), and in memory that it may not
 * read at the moment, or only write; and 3 that are lost. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "leftovers.h"

#define PAGE 4096

struct node {
	struct node *next;
	char rest[56];
};

MAKER(make_in_kernel)
MAKER(make_below)
MAKER(make_sealed)
MAKER(make_write_only)
MAKER(make_lost)

static void *volatile mapped[2];

static __attribute__((noinline)) void watch(int epoll)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = make_in_kernel() };

	((struct node *)event.data.ptr)->next = make_below();
	epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd(0, 0), &event);
}

static __attribute__((noinline)) void store(int index, struct node *(*make)(void), int count, int rights)
{
	struct node **words = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < count; i++)
		words[PAGE / sizeof(*words) + i] = make();
	mapped[index] = words;
	mprotect(words, 2 * PAGE, rights);
}

int main(void)
{
	int epoll = epoll_create1(0);

	for (int i = 0; i < 7; i++)
		watch(epoll);
	watch(epoll_create1(0));
	store(0, make_sealed, 5, PROT_NONE);
	store(1, make_write_only, 11, PROT_WRITE);
	for (int i = 0; i < 3; i++)
		make_lost();
	wipe();
	clear_registers();
	return 0;
}
