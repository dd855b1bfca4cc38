/* deep N: 5 blocks, each below N frames of descend. */
#include "target.h"

static volatile int returned;

static NOINLINE void leak_at_bottom(void)
{
	kept = malloc(103);
}

static NOINLINE void descend(int frames)
{
	if (frames > 1)
		descend(frames - 1);
	else
		leak_at_bottom();
	returned++;
}

int main(int argc, char **argv)
{
	int frames = argc == 2 ? atoi(argv[1]) : 200;

	for (int i = 0; i < 5; i++)
		descend(frames);
	return 0;
}
