/* Made to be attached to: 17 blocks, "ready", a byte, then 19 blocks and 5 of the first freed, "done", end of file. */
#include "target.h"

static void *early[17];

static NOINLINE void before_attach(void)
{
	for (size_t i = 0; i < COUNT(early); i++)
		early[i] = malloc(163);
}

static NOINLINE void leak_after_attach(void)
{
	for (int i = 0; i < 19; i++)
		kept = malloc(167);
}

static NOINLINE void free_early(void)
{
	for (int i = 0; i < 5; i++)
		free(early[i]);
}

int main(void)
{
	before_attach();
	ready();
	leak_after_attach();
	free_early();
	say("done\n");
	while (await_byte())
		;
	return 0;
}
