/* The main of a program that has many behaviours; each ends with status 5, if it ends by itself. */
#ifndef BEHAVES_H
#define BEHAVES_H

#include <stdio.h>

#include "target.h"

struct behaviour {
	const char *name;
	void (*run)(void);
};

/* With BEHAVES_WAITS it waits for a byte before it begins: for who attaches. */
static inline int behave(int argc, char **argv, const struct behaviour *behaviours, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("BEHAVES_WAITS"))
		ready();
	for (size_t i = 0; argc == 2 && i < count; i++)
		if (is(argv[1], behaviours[i].name)) {
			behaviours[i].run();
			return 5;
		}
	fail("usage: PROGRAM BEHAVIOUR");
	return 3;
}

#endif
