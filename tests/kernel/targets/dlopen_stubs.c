/* Loads libstubs.so, which counts references in its constructor. */
#include "target.h"
#include <dlfcn.h>

int main(void)
{
	if (dlopen("libstubs.so", RTLD_NOW) == NULL)
		fail("dlopen failed");
	return 0;
}
