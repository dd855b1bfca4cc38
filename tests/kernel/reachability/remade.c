/* Children whose parent frees what they have copies of, and makes its like at the same address, before each next fork. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 5

struct holder {
	struct holder *next;
	char *held;
	char name[32];
};

static struct holder *first;

__attribute__((noinline)) static struct holder *make_holder(void)
{
	return memset(malloc(sizeof(struct holder)), 0, sizeof(struct holder));
}

__attribute__((noinline)) static char *make_held(void)
{
	return strcpy(malloc(61), "held");
}

__attribute__((noinline)) static char *make_lost(void)
{
	return memset(malloc(67), 1, 67);
}

static void child(void)
{
	make_lost();
	first->next->held = make_held();
	exit(0);
}

int main(void)
{
	struct holder *was = NULL, *second;

	first = make_holder();
	for (int i = 0; i < CHILDREN; i++) {
		first->next = second = make_holder();
		if (was && second != was)
			return 1; /* this is about one address */
		was = second;
		if (!fork())
			child();
		first->next = NULL;
		free(second);
		if (wait(NULL) < 0)
			return 2;
	}
	return 0;
}
