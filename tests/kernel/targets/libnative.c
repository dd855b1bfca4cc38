/* A module of Lua's (5.1, LuaJIT): require "libnative" gives the functions leak() and around(f, x). Needs no header. */
#include "target.h"

#define GLOBALS (-10002)

typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);

void lua_call(lua_State *lua, int arguments, int results);
void lua_pushvalue(lua_State *lua, int index);
void lua_pushcclosure(lua_State *lua, lua_CFunction function, int values);
void lua_setfield(lua_State *lua, int index, const char *name);
int luaopen_libnative(lua_State *lua);

static NOINLINE int leak(lua_State *lua)
{
	(void)lua;
	kept = malloc(151);
	return 0;
}

/* Call f(x), with an allocation before and one after. */
static NOINLINE int around(lua_State *lua)
{
	kept = malloc(157);
	lua_pushvalue(lua, 1);
	lua_pushvalue(lua, 2);
	lua_call(lua, 1, 0);
	kept = malloc(163);
	return 0;
}

int luaopen_libnative(lua_State *lua)
{
	lua_pushcclosure(lua, leak, 0);
	lua_setfield(lua, GLOBALS, "leak");
	lua_pushcclosure(lua, around, 0);
	lua_setfield(lua, GLOBALS, "around");
	return 0;
}
