/* Functions that align their stack and keep where it was before; 3 blocks leak below all of them. */
#include "target.h"

static void touch(void *memory)
{
	__asm__ volatile("" : : "r"(memory) : "memory");
}

static NOINLINE void leak_below(int count)
{
	for (int i = 0; i < count; i++)
		kept = malloc(131);
}

/* Arguments on the stack: they are found from where the stack was before. */
static NOINLINE int align_64(int a, int b, int c, int d, int e, int f, int g, int depth)
{
	_Alignas(64) char buffer[64 * 3];
	int sum = a + b + c + d + e + f + g;

	touch(buffer);
	if (depth > 0)
		sum += align_64(b, c, d, e, f, g, a, depth - 1);
	else
		leak_below(3);
	touch(buffer);
	return sum;
}

/* Of a size that is known at run time only. */
static NOINLINE __attribute__((__force_align_arg_pointer__)) int align_any(size_t bytes)
{
	char *buffer = __builtin_alloca_with_align(bytes, 8 * 256);
	int sum;

	touch(buffer);
	sum = align_64(1, 2, 3, 4, 5, 6, 7, (int)(bytes / 100));
	touch(buffer);
	return sum;
}

int main(void)
{
	return align_any(700) == 28 * 8 ? 0 : 3;
}
