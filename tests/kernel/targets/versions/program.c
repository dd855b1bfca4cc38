/* Version 1 or 2 of a program: each has its code elsewhere, leaves its own blocks, and says what it is. */
#include "target.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define NAMED(version) leak_in_##version
#define NAME(version) NAMED(version)

#if VERSION == 2
__asm__(".text\n.skip 20011, 0x90\n");
#endif

NOINLINE void NAME(VERSION)(void)
{
	for (int i = 0; i < (VERSION == 1 ? 13 : 17); i++) {
		void *volatile freed = malloc(61);

		kept = malloc(89);
		free(freed);
	}
}

int main(int argc, char **argv)
{
	NAME(VERSION)();
	say("version " TEXT(VERSION) "\n");
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 20 + VERSION;
}
