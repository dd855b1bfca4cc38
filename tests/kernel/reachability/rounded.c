/* A pointer that a freed block left behind the end of the next one, where glibc rounds sizes up: nobody put it there,
 * unless the program asks how much it has (-DASKS). With -DPAGES, one in a page of which it asked for a part. */
#include <malloc.h>
#include <stdlib.h>

#include "leftovers.h"

struct node {
	char room[48];
};

MAKER(make_lost)
MAKER(make_held)

static char *volatile kept;
static volatile size_t usable;

int main(void)
{
	char *volatile first = malloc(40);

	*(struct node **)(first + 32) = make_lost();
	free(first);
	kept = malloc(30);
#ifdef ASKS
	usable = malloc_usable_size(kept);
#endif
#ifdef PAGES
	kept = pvalloc(100);
	*(struct node **)(kept + 2000) = make_held();
#endif
	first = 0;
	wipe();
	clear_registers();
	exit(usable == 1);
}
