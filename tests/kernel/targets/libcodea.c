/* Three functions, a page each, that need no relocation: own_code.c maps them itself. As large as the other libcode. */
#include "target.h"

#define LEAK(name) \
	NOINLINE __attribute__((__aligned__(4096))) void *name(void *(*allocate)(size_t)) \
	{ \
		char *block = allocate(89); \
		return block + 1; \
	}

LEAK(code_a_0)
LEAK(code_a_1)
LEAK(code_a_2)
