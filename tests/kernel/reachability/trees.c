/* Trees of counted nodes, each of which has its children in an array; some nodes are got once too often.
 *
 * lost: of two roots nobody knows any more.
 * held: the same, but a global points at one of the roots.
 * both: of one root, and of one of its children.
 * shared: two roots have a child in common.
 * ring: of a root at which its children point back. */
#include <stdlib.h>

#include "leftovers.h"

#define NOINLINE __attribute__((noinline, noipa))
#define MOST 4

struct node {
	int count;
	struct node **children;
	struct node *back;
};

static struct node *volatile held;

NOINLINE struct node *node_new(void)
{
	struct node *node = calloc(1, sizeof(*node));

	node->count = 1;
	node->children = calloc(MOST, sizeof(*node->children));
	return node;
}

NOINLINE void node_get(struct node *node)
{
	node->count++;
}

NOINLINE void node_put(struct node *node)
{
	if (--node->count)
		return;
	for (int i = 0; i < MOST; i++)
		if (node->children[i])
			node_put(node->children[i]);
	free(node->children);
	free(node);
}

static NOINLINE struct node *tree(int depth, int width)
{
	struct node *node = node_new();

	for (int i = 0; depth && i < width; i++)
		node->children[i] = tree(depth - 1, width);
	return node;
}

static NOINLINE void show(struct node *node, int forgets)
{
	node_get(node);
	if (!forgets)
		node_put(node);
}

static NOINLINE void save(struct node *node, int forgets)
{
	node_get(node);
	if (!forgets)
		node_put(node);
}

/* 1 + 2 + 4 nodes. */
static NOINLINE void small(int forgets, int forgets_child)
{
	struct node *node = tree(2, 2);

	show(node, forgets);
	save(node->children[0], forgets_child);
	node_put(node);
}

/* 1 + 3 nodes. */
static NOINLINE void flat(int forgets, int holds)
{
	struct node *node = tree(1, 3);

	save(node, forgets);
	if (holds)
		held = node;
	node_put(node);
}

static NOINLINE void share(int forgets)
{
	struct node *one = tree(1, 2), *other = tree(1, 2);

	node_get(one->children[1]);
	other->children[2] = one->children[1];
	show(one, forgets);
	save(other, forgets);
	node_put(one);
	node_put(other);
}

static NOINLINE void point_back(int forgets)
{
	struct node *node = tree(1, 3);

	for (int i = 0; i < 3; i++)
		node->children[i]->back = node;
	show(node, forgets);
	node_put(node);
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "";
	int lost = !strcmp(how, "lost"), holds = !strcmp(how, "held"), both = !strcmp(how, "both");

	for (int last = 0; last < 4; last++) {
		small(last == 3 && (lost || holds || both), last == 3 && both);
		flat(last == 3 && (lost || holds), last == 3 && holds);
		share(last == 3 && !strcmp(how, "shared"));
		point_back(last == 3 && !strcmp(how, "ring"));
	}
	wipe();
	clear_registers();
	exit(0);
}
