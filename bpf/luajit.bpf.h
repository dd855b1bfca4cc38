// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of LuaJIT's interpreter (2.1 for x86-64 with 64-bit pointers).
 *
 * Its interpreter keeps one frame on the C stack for each time that C enters
 * Lua, and pcall and the like need none. That frame names the Lua state, and
 * the state the innermost such frame: where both agree at the stack pointer
 * of a walked frame, that is the interpreter's. So no entry needs to be known.
 * Code of a trace has no such frame. While one runs, nothing is shown.
 *
 * Sources: lj_frame.h, lj_obj.h, lj_debug.c (debug_framepc, lj_debug_line).
 */
#ifndef REFLEAK_LUAJIT_H
#define REFLEAK_LUAJIT_H

#include "abi.h"
#include "interpreters.bpf.h"
#include "lua.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define LUAJIT_STEPS 480
#define LUAJIT_POINTER ((1ULL << 47) - 1)
#define LUAJIT_TAG_FUNCTION 0x1fff7
#define LUAJIT_TAG_THREAD 0x1fff9
#define LUAJIT_PROTO_BYTES 104 /* its bytecode follows */
#define LUAJIT_TEXT 24 /* of a GCstr */
#define LUAJIT_VM_C_TO_GC \
	3 /* of vmstate, negated: interpreter, C function, collector; beyond: traces are made or left */

/* Of every object (GCHeader). */
#define LUAJIT_TYPE 9

/* lua_State. */
enum luajit_state {
	STATE_GLOBAL = 16,
	STATE_BASE = 32,
	STATE_TOP = 48,
	STATE_STACK = 56,
	STATE_C_FRAME = 80,
	STATE_BYTES = 96,
};

/* The interpreter's frame on the C stack (vm_x64.dasc), from its stack pointer. */
enum luajit_c_frame {
	C_FRAME_RESULTS = 8,
	C_FRAME_STATE = 16,
	C_FRAME_PC = 24,
	C_FRAME_PREVIOUS = 32,
	C_FRAME_BYTES = 40,
};

/* GCfunc, and how many instructions a GCproto has. */
enum luajit_function {
	FUNCTION_IS_C = 10, /* ffid: 0 for a Lua function */
	FUNCTION_PC = 32,
	FUNCTION_BYTES = 40,
	PROTO_SIZE = 12,
};

enum luajit_object {
	LUAJIT_STRING = 4,
	LUAJIT_THREAD = 6,
	LUAJIT_PROTO = 7,
	LUAJIT_FUNCTION = 8,
};

enum luajit_link {
	LUAJIT_LUA = 0, /* the word is the caller's next instruction */
	LUAJIT_C = 1,
	LUAJIT_CONTINUED = 2,
	LUAJIT_VARARG = 3,
};

/* Does the interpreter run this state, and not a trace? */
INLINE int luajit_interprets(struct luajit *walk, struct lua *lua)
{
	u64 current = user_word(walk->global + lua->current);
	u32 vm_state = ~user_half(walk->global + lua->vm_state);

	return current && user_word(current + STATE_GLOBAL) == walk->global &&
	       !user_word(walk->global + lua->current + 8) && vm_state < LUAJIT_VM_C_TO_GC;
}

/* Is this C stack frame the innermost of a Lua state? Then that is gone over. */
INLINE int find_luajit_state(struct interpreter *interpreter, struct luajit *walk, u64 c_frame)
{
	u64 state = user_word(c_frame + C_FRAME_STATE);

	if (!state || state & 7 || bpf_probe_read_user(interpreter->words, STATE_BYTES, (void *)state))
		return 0;
	if (byte_of(interpreter, LUAJIT_TYPE) != LUAJIT_THREAD ||
	    (word_of(interpreter, STATE_C_FRAME) & ~3ULL) != c_frame)
		return 0;
	walk->state = state;
	walk->global = word_of(interpreter, STATE_GLOBAL);
	walk->at = word_of(interpreter, STATE_BASE) - 8;
	walk->top = word_of(interpreter, STATE_TOP);
	walk->stack = word_of(interpreter, STATE_STACK);
	walk->is_pseudo = 0;
	return 1;
}

/* Look at the next walked frame for one of the interpreter; 0 ends the walk. */
INLINE int next_luajit_run(struct thread *thread, struct interpreter *interpreter, struct luajit *walk, struct lua *lua)
{
	u64 index = walk->index, caller, c_frame;
	s32 results;

	if (index + 1 >= thread->stack.depth || index + 1 >= MAX_FRAMES)
		return 0;
	MASK(index, MAX_FRAMES + 1);
	c_frame = interpreter->origin + thread->places[index];
	caller = index + 1;
	MASK(caller, MAX_FRAMES + 1);
	walk->index++;
	if (!walk->c_frame) {
		if (!find_luajit_state(interpreter, walk, c_frame))
			return 1;
		if (!luajit_interprets(walk, lua)) {
			interpreter->stack.is_cut = 1;
			return 0;
		}
	} else if (c_frame < walk->c_frame) {
		return 1;
	} else if (c_frame != walk->c_frame) {
		interpreter->stack.is_cut = 1;
		return 0;
	}
	if (bpf_probe_read_user(interpreter->words, C_FRAME_BYTES, (void *)c_frame) ||
	    word_of(interpreter, C_FRAME_STATE) != walk->state) {
		interpreter->stack.is_cut = 1;
		return 0;
	}
	walk->c_frame = word_of(interpreter, C_FRAME_PREVIOUS) & ~3ULL;
	results = half_of(interpreter, C_FRAME_RESULTS);
	if (results < 0 && walk->at < walk->stack - (s64)results) /* it protects C, and runs no Lua */
		return 1;
	walk->pc = word_of(interpreter, C_FRAME_PC);
	walk->place = thread->places[caller] | 1;
	return 1;
}

/* The line of the instruction before `pc`, which is the next to run. */
INLINE u32 luajit_line(struct interpreter *interpreter, struct lua *lua, u64 proto, u64 pc)
{
	u64 lines = word_of(interpreter, lua->lines), offset = pc - proto - LUAJIT_PROTO_BYTES, at = (offset >> 2) - 1;
	u32 first = half_of(interpreter, lua->defined), count = half_of(interpreter, lua->line_count), difference = 0;

	if (!lines || offset & 3 || at >= half_of(interpreter, PROTO_SIZE))
		return INTERPRETER_NO_LINE;
	if (!at)
		return first;
	at--;
	if (count < 1 << 8) {
		if (bpf_probe_read_user(&difference, 1, (void *)(lines + at)))
			return INTERPRETER_NO_LINE;
	} else if (count < 1 << 16) {
		if (bpf_probe_read_user(&difference, 2, (void *)(lines + at * 2)))
			return INTERPRETER_NO_LINE;
	} else if (bpf_probe_read_user(&difference, 4, (void *)(lines + at * 4))) {
		return INTERPRETER_NO_LINE;
	}
	return difference <= count ? first + difference : INTERPRETER_NO_LINE;
}

INLINE int add_luajit_frame(struct thread *thread, struct interpreter *interpreter, struct lua *lua, u64 proto)
{
	u64 hash = mixed((u64)thread->pid << 16 ^ thread->generation, proto), source;
	u32 where;

	if (bpf_probe_read_user(interpreter->words, LUAJIT_PROTO_BYTES, (void *)proto) ||
	    byte_of(interpreter, LUAJIT_TYPE) != LUAJIT_PROTO)
		return add_interpreter_frame(interpreter, 0, 0, 0, 0);
	source = word_of(interpreter, lua->source);
	hash = mixed(mixed(hash, source), word_of(interpreter, lua->lines));
	hash = mixed(hash, (u64)half_of(interpreter, lua->defined) << 32 | half_of(interpreter, lua->line_count));
	hash = mixed(hash, half_of(interpreter, PROTO_SIZE));
	where = luajit_line(interpreter, lua, proto, interpreter->luajit.pc);
	__builtin_memset(interpreter->content, 0, sizeof(interpreter->content));
	bpf_probe_read_user_str(interpreter->content, sizeof(interpreter->content), (void *)(source + LUAJIT_TEXT));
#pragma unroll
	for (int i = 0; i < CONTENT_BYTES / 8; i++)
		hash = mixed(hash, interpreter->content[i]);
	return add_interpreter_frame(interpreter, hash | !hash, where, 0, proto | interpreter->luajit.layout);
}

/* Add the frame that is looked at, unless it is a C function's, or a vararg function's first one. 0: something is odd. */
INLINE int luajit_frame(struct thread *thread, struct interpreter *interpreter, struct luajit *walk, struct lua *lua,
			u64 function)
{
	if (function >> 47 == LUAJIT_TAG_THREAD)
		return 1;
	if (function >> 47 != LUAJIT_TAG_FUNCTION ||
	    bpf_probe_read_user(interpreter->words, FUNCTION_BYTES, (void *)(function & LUAJIT_POINTER)) ||
	    byte_of(interpreter, LUAJIT_TYPE) != LUAJIT_FUNCTION)
		return 0;
	if (byte_of(interpreter, FUNCTION_IS_C) || walk->is_pseudo)
		return 1;
	return add_luajit_frame(thread, interpreter, lua, word_of(interpreter, FUNCTION_PC) - LUAJIT_PROTO_BYTES);
}

/* Go on by one frame, or to the next run of the interpreter; returns whether that was the last one. */
INLINE int luajit_turn(struct interpreter_walk *now)
{
	struct interpreter *interpreter = now->interpreter;
	struct luajit *walk = &interpreter->luajit;
	struct lua *lua = lua_of(walk->layout);
	u64 at = walk->at, slot[4] = {}, link; /* continuation, its instruction, function, link */
	u32 type;

	if (!walk->place) {
		now->is_over = !next_luajit_run(now->thread, interpreter, walk, lua);
		return now->is_over;
	}
	if (at <= walk->stack + 8 || at >= walk->top || at & 7 ||
	    bpf_probe_read_user(slot, sizeof(slot), (void *)(at - 24)))
		return 1;
	link = slot[3];
	type = link & 3;
	if (!luajit_frame(now->thread, interpreter, walk, lua, slot[2]))
		return 1;
	walk->is_pseudo = (link & 7) == LUAJIT_VARARG;
	walk->pc = 0;
	if (type == LUAJIT_LUA) {
		walk->pc = link;
		walk->at = at - 16 - (user_half(link - 4) >> 8 & 0xff) * 8;
		return 0;
	}
	if (link < 8 || link >> 32)
		return 1;
	walk->at = at - (link & ~7ULL);
	if ((link & 7) == LUAJIT_CONTINUED && slot[0] != 1) {
		walk->pc = slot[1];
	} else if (type == LUAJIT_C || (link & 7) == LUAJIT_CONTINUED) { /* C, or FFI's callback, entered Lua */
		if (!add_interpreter_frame(interpreter, 0, 0, walk->place, 0))
			return 1;
		walk->place = 0;
	}
	return 0;
}

/* Go over the interpreter's frames on the C stack, leaf first, and for each over its part of the Lua stack. */
INLINE void walk_luajit(struct thread *thread, struct interpreter *interpreter)
{
	struct interpreter_walk walk = { .thread = thread, .interpreter = interpreter };

	REPEAT(LUAJIT_STEPS, luajit, &walk);
	if (walk.is_over)
		return;
	if (interpreter->stack.depth >= INTERPRETER_FRAMES && !interpreter->stack.frames[INTERPRETER_FRAMES - 1].place)
		interpreter->stack.frames[INTERPRETER_FRAMES - 1].place =
			interpreter->luajit.place; /* what there was room for */
	interpreter->stack.is_cut = 1;
}

#endif
