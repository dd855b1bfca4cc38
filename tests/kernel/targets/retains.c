/*
 * Keeps 7 blocks of 200 bytes from the start (make_kept). Then, and again for each byte of stdin, a list held by
 * cache.table.head grows by 13 nodes, each with a name of 24 bytes (make_node, make_name), and 3 blocks of 48 bytes are
 * lost (lose); each time a line on stdout.
 */
#include "target.h"

struct node {
	struct node *next;
	char *name;
	char data[84];
};

static struct {
	int version;
	struct {
		long uses;
		struct node *head;
	} table;
} cache;
static void *volatile first[7];

static NOINLINE void make_kept(void)
{
	for (volatile int i = 0; i < 7; i++)
		first[i] = malloc(200);
}

static NOINLINE char *make_name(void)
{
	return malloc(24);
}

static NOINLINE struct node *make_node(struct node *next)
{
	struct node *node = malloc(sizeof(*node));

	node->next = next;
	node->name = make_name();
	return node;
}

static NOINLINE void lose(void)
{
	for (volatile int i = 0; i < 3; i++)
		kept = malloc(48);
	kept = NULL;
}

int main(void)
{
	make_kept();
	for (int step = 0; step < 3; step++) {
		for (volatile int i = 0; i < 13; i++)
			cache.table.head = make_node(cache.table.head);
		lose();
		ready();
	}
	return 0;
}
