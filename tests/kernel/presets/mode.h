/* Each program runs as `leak`, `clean` or `over`: with one put too few, just enough, or one too many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int leaks, overputs;

static inline void read_mode(int argc, char **argv)
{
	leaks = argc > 1 && !strcmp(argv[1], "leak");
	overputs = argc > 1 && !strcmp(argv[1], "over");
}
