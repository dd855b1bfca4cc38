// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of interpreters: what is kept of a thread that runs one.
 *
 * Kept apart from struct thread, so that threads without an interpreter pay
 * nothing. State that a loop carries from turn to turn is in here too, in
 * memory, where the verifier does not tell its values apart.
 */
#ifndef REFLEAK_INTERPRETERS_H
#define REFLEAK_INTERPRETERS_H

#include "abi.h"
#include "maps.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

#define LUA_ENTRIES 64
#define CONTENT_BYTES 64
#define OBJECT_WORDS 32
#define WINDOW_WORDS 256
#define APART 240 /* from which word on a frame is read that is near no other */
#define KNOWN_CODES 128

enum interpreter_kind {
	RUNS_PYTHON = 1,
	RUNS_LUA = 2,
	RUNS_LUAJIT = 4,
};

/* A call into Lua: one of lua_pcallk, lua_callk, lua_resume, ... */
struct lua_entry {
	u64 slot; /* address of its return address */
	u64 state;
	u64 call; /* the state's innermost call then: what is newer belongs to this entry; 0: all does */
	u32 layout;
	u32 is_live; /* its frame is one of the stack that was walked last */
};

/* A walk of LuaJIT's frames. */
struct luajit {
	u64 layout; /* 0: the thread has not entered one */
	u64 state;
	u64 global;
	u64 at; /* a frame's link to the one before, on the Lua stack */
	u64 pc; /* where that frame's function goes on; 0: not known */
	u64 top;
	u64 stack;
	u64 c_frame; /* where on the C stack the same state's next run is; 0: another state's is next */
	u64 index; /* of the native frame to look at next */
	u64 place;
	u64 is_pseudo; /* of a vararg function, whose arguments it holds: the one above was the function's own */
};

/* A code object that was looked at, and what tells it from all others. */
struct known_code {
	u64 code;
	u64 id;
};

/* Memory that frames of Python lie in, one behind the other mostly: read at once for many of them. */
struct window {
	u64 start;
	u64 end;
	u64 last; /* address of the frame that is looked at */
	u64 frame; /* and its first word */
	u64 words[WINDOW_WORDS];
};

struct interpreter {
	u64 state; /* PyThreadState */
	u64 missed; /* number of thread states when this thread was last seen to have none */
	u64 misses;
	u64 at;
	u64 end;
	u64 cursor;
	u64 place;
	u64 self; /* what pthread_self() returns */
	u64 hash;
	u64 origin; /* where the walk of the C stack began */
	u64 lua_state; /* whose calls are gone over */
	u64 lua_layout;
	u64 lua_depth;
	u64 lua_lost; /* slot of the outermost entry for which there was no room; 0: none */
	u64 words[OBJECT_WORDS]; /* the object that is looked at */
	u64 content[CONTENT_BYTES / 8];
	u32 pid; /* whose code `known` is of, as the count of ended ones was: */
	u32 generation;
	u64 code_ends;
	struct known_code known[KNOWN_CODES];
	u64 sent[KNOWN_CODES]; /* codes that the tracer was told of lately */
	struct window window;
	u64 objects[INTERPRETER_FRAMES]; /* code object of each frame; in the low bits the Lua layout, 0: Python */
	struct lua_entry lua[LUA_ENTRIES];
	struct luajit luajit;
	struct interpreter_stack stack;
	struct interpreter_code record;
};

_Static_assert(sizeof(struct interpreter) <= ROOM_OF_interpreter, "struct interpreter outgrew its map");

/* What a loop over an interpreter's frames goes by; the rest is in struct interpreter. */
struct interpreter_walk {
	struct thread *thread;
	struct interpreter *interpreter;
	u64 is_over; /* at its end; else it was cut */
};

INLINE struct interpreter *interpreter_of(u32 tid)
{
	return map_lookup(INTERPRETERS, &tid);
}

INLINE struct interpreter *make_interpreter(u32 tid)
{
	struct interpreter *interpreter = interpreter_of(tid);

	if (interpreter)
		return interpreter;
	map_update(INTERPRETERS, &tid, BLANK(INTERPRETERS), NOEXIST);
	return interpreter_of(tid);
}

INLINE u64 user_word(u64 address)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

INLINE u32 user_half(u64 address)
{
	u32 half = 0;

	bpf_probe_read_user(&half, sizeof(half), (void *)address);
	return half;
}

/* The word at a byte offset of the object that was read last. */
INLINE u64 word_of(struct interpreter *interpreter, u32 offset)
{
	u64 index = offset >> 3;

	MASK(index, OBJECT_WORDS);
	return interpreter->words[index];
}

INLINE u32 half_of(struct interpreter *interpreter, u32 offset)
{
	u64 word = word_of(interpreter, offset);

	return offset & 4 ? word >> 32 : word;
}

INLINE u8 byte_of(struct interpreter *interpreter, u32 offset)
{
	return word_of(interpreter, offset) >> ((offset & 7) << 3);
}

/* What a thread may run: a Python of its process, whose mapping table's number is told; a Lua that it has entered. */
INLINE u32 interpreters_of(u32 tid, const u32 *table)
{
	struct interpreter *interpreter = interpreter_of(tid);
	u64 index = *table;

	MASK(index, TABLES);
	return (VALUE(PYTHONS)->at[index].runtime ? RUNS_PYTHON : 0) |
	       (interpreter && interpreter->lua_depth ? RUNS_LUA : 0) |
	       (interpreter && interpreter->luajit.layout ? RUNS_LUAJIT : 0);
}

/* Where an address is on the C stack: from where the walk began, and never 0. */
INLINE u32 place_of(struct interpreter *interpreter, u64 address)
{
	return (u32)(address - interpreter->origin) | 1;
}

INLINE int add_interpreter_frame(struct interpreter *interpreter, u64 code, u32 where, u32 place, u64 object)
{
	u64 depth = interpreter->stack.depth;
	struct interpreter_frame *frame;

	if (depth >= INTERPRETER_FRAMES) {
		interpreter->stack.is_cut = 1;
		return 0;
	}
	MASK(depth, INTERPRETER_FRAMES);
	frame = &interpreter->stack.frames[depth];
	frame->code = code;
	frame->where = where;
	frame->place = place;
	interpreter->objects[depth] = object;
	interpreter->stack.depth = depth + 1;
	/* Not the place: one stack is one, wherever it stands. */
	interpreter->hash = mixed(interpreter->hash, code);
	interpreter->hash = mixed(interpreter->hash, (u64)where << 1 | (place != 0));
	return 1;
}

/* Mix bytes of the target into a hash, CONTENT_BYTES at most. */
INLINE u64 mixed_content(struct interpreter *interpreter, u64 hash, u64 address, u64 size)
{
	__builtin_memset(interpreter->content, 0, sizeof(interpreter->content));
	if (size > CONTENT_BYTES)
		size = CONTENT_BYTES;
	BARRIER(size);
	if (size > CONTENT_BYTES)
		return hash;
	if (size)
		bpf_probe_read_user(interpreter->content, size, (void *)address);
#pragma unroll
	for (int i = 0; i < CONTENT_BYTES / 8; i++)
		hash = mixed(hash, interpreter->content[i]);
	return hash;
}

#endif
