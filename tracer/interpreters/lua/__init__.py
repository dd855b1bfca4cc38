"""Lua and LuaJIT: where they keep frames and lines."""
