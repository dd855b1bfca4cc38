/* A counted type whose put begins with an instruction that the kernel does not probe, and jumps to free. */
#include <stdlib.h>

struct node {
	int count;
};

__attribute__((noinline)) struct node *node_new(void)
{
	struct node *node = malloc(sizeof(*node));

	node->count = 1;
	return node;
}

void node_put(struct node *node);
__asm__(".globl node_put\n.type node_put,@function\n"
	"node_put:\n\tlock decl (%rdi)\n\tjne 1f\n\tjmp free\n1:\tret\n"
	".size node_put,.-node_put\n");

int main(void)
{
	for (int i = 0; i < 5; i++)
		node_put(node_new());
	return 0;
}
