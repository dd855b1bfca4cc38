/* A library that leaks on behalf of a script: called from Python by ctypes, from Lua as a C function. */
#include <stdlib.h>

typedef struct lua_State lua_State;
__attribute__((weak)) long lua_tointegerx(lua_State *state, int index, int *is_number);
__attribute__((weak)) long lua_tointeger(lua_State *state, int index);

void *leak_block(long size)
{
	return malloc(size);
}

/* Calls back into the script, which calls leak_block from there. */
void call_back(void (*function)(long), long size)
{
	function(size);
}

int leak_for_lua(lua_State *state)
{
	void *volatile leaked = malloc(lua_tointegerx ? lua_tointegerx(state, 1, 0) : lua_tointeger(state, 1));

	(void)leaked;
	return 0;
}
