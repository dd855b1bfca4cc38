/* Load A, close it, load B where A was, close it, load A again. Says "same address" where the kernel put B there. */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <link.h>

static uintptr_t load(const char *name, int stays)
{
	void *library = dlopen(name, RTLD_NOW);
	struct link_map *map;
	uintptr_t base;

	if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		fail("dlopen failed");
	base = map->l_addr;
	if (!stays)
		dlclose(library);
	return base;
}

static NOINLINE uintptr_t load_a_first(void)
{
	uintptr_t base = load("liba.so", 0);

	kept = NULL;
	return base;
}

static NOINLINE uintptr_t load_b(void)
{
	uintptr_t base = load("libb.so", 0);

	kept = NULL;
	return base;
}

static NOINLINE uintptr_t load_a_again(void)
{
	uintptr_t base = load("liba.so", 1);

	kept = NULL;
	return base;
}

int main(void)
{
	uintptr_t first = load_a_first(), second = load_b(), third = load_a_again();

	say(first == second && second == third ? "same address\n" : "other address\n");
	return 0;
}
