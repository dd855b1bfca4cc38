/* many_libraries FOLDER N: open libmany0.so to libmanyN-1.so of a folder; when told, have each leak its block, and end. */
#include "target.h"
#include <dlfcn.h>
#include <stdio.h>

static void (*functions[1 << 12])(void);

static NOINLINE void leak_in_each(int count)
{
	for (int i = 0; i < count; i++)
		functions[i]();
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	char path[4096], name[32];

	if (count <= 0 || count > (int)COUNT(functions))
		fail("usage: many_libraries FOLDER N");
	for (int i = 0; i < count; i++) {
		void *library;

		snprintf(path, sizeof(path), "%s/libmany%d.so", argv[1], i);
		snprintf(name, sizeof(name), "leak_in_%d", i);
		library = dlopen(path, RTLD_NOW);
		functions[i] = library != NULL ? (void (*)(void))dlsym(library, name) : NULL;
		if (functions[i] == NULL)
			fail("dlopen failed");
	}
	ready();
	leak_in_each(count);
	return 0;
}
