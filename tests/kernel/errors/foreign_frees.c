/*
 * One free of what lies in no heap, by the case that is named. All of it is
 * zeros, at which glibc aborts.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static char zeroed[1 << 20] __attribute__((aligned(16)));
static __thread char local[256] __attribute__((aligned(16)));
static void *volatile shown;
static pthread_barrier_t barrier;
static ucontext_t here, there;

NOINLINE static void again(void *address)
{
	free(address);
}

static void *frees_local(void *unused)
{
	again(local + 64);
	return unused;
}

static void *shows_stack(void *unused)
{
	char room[512] __attribute__((aligned(16))) = { 0 };

	shown = room + 256;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return unused;
}

static void in_fiber(void)
{
	char room[512] __attribute__((aligned(16))) = { 0 };

	again(room + 256);
}

/* `stack` is a mapping that was not made for one, or a block. */
static void on_fiber(void *stack)
{
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = 1 << 16;
	there.uc_link = &here;
	makecontext(&there, in_fiber, 0);
	swapcontext(&here, &there);
}

int main(int count, char **arguments)
{
	const char *what = arguments[count - 1];
	pthread_t thread;

	pthread_barrier_init(&barrier, 0, 2);
	if (!strcmp(what, "zeroed"))
		again(zeroed + (1 << 19));
	if (!strcmp(what, "code"))
		again((void *)(((size_t)main + 15) & ~15UL));
	if (!strcmp(what, "unused"))
		again((char *)sbrk(1 << 16) + 4096);
	if (!strcmp(what, "fiber"))
		on_fiber(mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (!strcmp(what, "fiber-in-block"))
		on_fiber(malloc(1 << 16));
	if (!strcmp(what, "local")) {
		pthread_create(&thread, 0, frees_local, 0);
		pthread_join(thread, 0);
	}
	if (!strcmp(what, "others-stack")) {
		pthread_create(&thread, 0, shows_stack, 0);
		pthread_barrier_wait(&barrier);
		again(shown);
	}
	return 0;
}
