/*
 * generations N [inside]: N children, one after the other, each of which leaves a grandchild behind that ends after it.
 * The first grandchild of all ends last, when all others are gone. Each frees some of what those before it had made;
 * with "inside" the last frees the middle of a block of its parent's, which ends it.
 */
#include "target.h"

#include <poll.h>
#include <sys/wait.h>

static void *of_first[3], *of_child[2];

static NOINLINE void make(void **blocks, int count, size_t size)
{
	for (int i = 0; i < count; i++)
		blocks[i] = malloc(size);
}

static NOINLINE void in_grandchild(void)
{
	void *block;

	free(of_first[1]);
	free(of_child[0]);
	make(&block, 1, 71);
	block = NULL;
}

static NOINLINE void in_child(void)
{
	free(of_first[0]);
	make(of_child, 2, 61);
}

/* Wait until the other end of a pipe is closed by all who have it. */
static void wait_for_end(int end)
{
	struct pollfd closed = { .fd = end, .events = POLLIN };

	while (poll(&closed, 1, -1) < 0 && errno == EINTR)
		;
}

static void grandchild(pid_t parent, int last, int inside)
{
	while (getppid() == parent)
		usleep(100);
	if (last >= 0)
		wait_for_end(last);
	in_grandchild();
	if (last >= 0 && inside)
		free((char *)of_child[1] + 16);
	_exit(0);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, last[2], ends[2], rest[2], status;

	if (!count || pipe(last) || pipe(rest))
		fail("usage: generations N [inside]");
	make(of_first, 3, 17);
	for (int i = 0; i < count; i++) {
		pid_t child;

		if (pipe(ends))
			fail("pipe failed");
		child = fork();
		if (child == 0) {
			pid_t self = getpid();

			close(last[1]);
			close(i ? rest[1] : ends[1]);
			in_child();
			if (fork() == 0)
				grandchild(self, i ? -1 : last[0], argc > 2);
			_exit(0);
		}
		close(ends[1]);
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			fail("a child failed");
		if (i)
			wait_for_end(ends[0]); /* its grandchild's */
		close(ends[0]);
	}
	make(of_first, 1, 17); /* the first of them is kept by those that were forked */
	close(last[1]);
	close(rest[1]);
	wait_for_end(rest[0]);
	return 0;
}
