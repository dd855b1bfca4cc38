/* Lives for a moment: 31 blocks, and exit. */
#include "target.h"

static NOINLINE void leak_and_leave(void)
{
	for (int i = 0; i < 31; i++)
		kept = malloc(151);
}

int main(void)
{
	leak_and_leave();
	return 0;
}
