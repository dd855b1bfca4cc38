/* Blocks that are held where the process itself cannot look: in the kernel, for epoll(7), for timers and as stacks for
 * signals, and in memory that it may not read at the moment, or only write; memory that is mapped twice; and 3 blocks
 * that are lost. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "leftovers.h"

#define PAGE 4096

struct node {
	struct node *next;
	char rest[56];
};

MAKER(make_in_kernel)
MAKER(make_below)
MAKER(make_for_timer)
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

static __attribute__((noinline)) void time_out(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec far = { .it_value.tv_sec = 3600 };
	timer_t timer;

	event.sigev_value.sival_ptr = make_for_timer();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		timer_settime(timer, 0, &far, NULL);
}

static __attribute__((noinline)) void make_signal_stack(void)
{
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&stack, NULL);
	clear_registers();
}

static volatile int is_waiting;

static void *wait_for_ever(void *unused)
{
	make_signal_stack();
	wipe();
	is_waiting = 1;
	for (;;)
		pause();
	return unused;
}

static __attribute__((noinline)) void store(int index, struct node *(*make)(void), int count, int rights)
{
	struct node **words = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < count; i++)
		words[PAGE / sizeof(*words) + i] = make();
	mapped[index] = words;
	mprotect(words, 2 * PAGE, rights);
}

/* As JIT compilers do it: one view of the memory is written, the other one executed. */
static void *volatile views[2];

static __attribute__((noinline)) void map_twice(void)
{
	int file = memfd_create("jit", 0);

	if (ftruncate(file, 4 * PAGE))
		return;
	views[0] = mmap(NULL, 4 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
	views[1] = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
}

int main(void)
{
	int epoll = epoll_create1(0);
	pthread_t thread;

	map_twice();
	make_signal_stack();
	pthread_create(&thread, NULL, wait_for_ever, NULL);
	for (int i = 0; i < 6; i++)
		time_out();
	for (int i = 0; i < 7; i++)
		watch(epoll);
	watch(epoll_create1(0));
	store(0, make_sealed, 5, PROT_NONE);
	store(1, make_write_only, 11, PROT_WRITE);
	for (int i = 0; i < 3; i++)
		make_lost();
	while (!is_waiting)
		usleep(1000);
	wipe();
	clear_registers();
	return 0;
}
