/*
 * far_callers N: 100 blocks, by turns of 1003 and 1005 bytes, each below N frames of descend, with frame pointers, these
 * below first or second, which are alike, and these below more frames, 100 in all: the stacks differ in two words.
 */
#include "target.h"

#define FRAMED NOINLINE __attribute__((__optimize__("no-omit-frame-pointer")))
#define FRAMES 100

static volatile int returned;

static FRAMED void leak_at_bottom(size_t size)
{
	kept = malloc(size);
	returned++;
}

static FRAMED void descend(size_t size, int frames)
{
	if (frames > 1)
		descend(size, frames - 1);
	else
		leak_at_bottom(size);
	returned++;
}

static FRAMED void first(size_t size, int frames)
{
	descend(size, frames);
	returned++;
}

static FRAMED void second(size_t size, int frames)
{
	descend(size, frames);
	returned++;
}

static FRAMED void come_down(size_t size, int frames, int left)
{
	if (left > 0)
		come_down(size, frames, left - 1);
	else if (size == 1003)
		first(size, frames);
	else
		second(size, frames);
	returned++;
}

int main(int argc, char **argv)
{
	int frames = argc == 2 ? atoi(argv[1]) : FRAMES;

	for (volatile int i = 0; i < 100; i++)
		come_down(i % 2 ? 1005 : 1003, frames, FRAMES - frames);
	return 0;
}
