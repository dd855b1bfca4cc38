/* Many blocks of many sizes, so that a sample of them can be held against what there is. */
#include "target.h"

static NOINLINE void leak_small(void)
{
	for (int i = 0; i < 100003; i++)
		kept = malloc(48);
}

static NOINLINE void leak_mixed(void)
{
	for (int i = 0; i < 20011; i++)
		kept = malloc(1 + i * 7919L % 4096);
}

static NOINLINE void leak_calloc(void)
{
	for (int i = 0; i < 3001; i++)
		kept = calloc(10, 20);
}

static NOINLINE void leak_reallocated(void)
{
	for (int i = 0; i < 10007; i++)
		kept = realloc(malloc(16), 400);
}

static NOINLINE void leak_big(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(1048576);
}

static NOINLINE void churn(void)
{
	for (int i = 0; i < 30011; i++) {
		kept = realloc(malloc(64 + i % 100), 300);
		free(kept);
	}
}

int main(void)
{
	leak_small();
	leak_mixed();
	leak_calloc();
	leak_reallocated();
	churn();
	leak_big();
	return 0;
}
