// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of PUC-Lua 5.1 to 5.5.
 *
 * A Lua state is known from probes on the functions that enter Lua. Of those
 * that a thread has entered, the ones that it is still in are told by the C
 * stack: their return address is in its place among the walked frames'. So
 * what errors and yields leave behind does no harm.
 */
#ifndef REFLEAK_LUA_H
#define REFLEAK_LUA_H

#include "abi.h"
#include "interpreters.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define LUA_YIELD 1
#define LUA_FUNCTION 6
#define LUA_STEPS 320
#define LUA_TEXT 24 /* of a string */
#define LUA_PROTO_BYTES 120 /* of Proto, as far as its fields are read; the next two of CallInfo */
#define LUA_CALL_BYTES 64
#define LUA_OLD_CALL_BYTES 40 /* in 5.1 */

INLINE struct lua *lua_of(u64 layout)
{
	MASK(layout, LUA_LAYOUTS);
	return &VALUE(LUAS)->at[layout];
}

/* Forget the newest entry, if its stack frame was at or below that of the one that is entered. */
INLINE int leave_lua_turn(struct interpreter *interpreter)
{
	u64 depth = interpreter->lua_depth - 1;

	if (!interpreter->lua_depth)
		return 1;
	MASK(depth, LUA_ENTRIES);
	if (interpreter->lua[depth].slot > interpreter->cursor)
		return 1;
	interpreter->lua_depth = depth;
	return 0;
}

/* Enter a call into Lua in the thread's list; those whose stack frame was at or below this one's are over. */
INLINE void lua_entered(struct thread *thread, struct interpreter *interpreter, u64 slot, u64 state, u64 layout)
{
	struct lua *lua = lua_of(layout);
	struct lua_entry *entry;
	u8 status = 0;
	u64 depth;

	if (lua->current) {
		interpreter->luajit.layout = layout;
		thread->interpreters |= RUNS_LUAJIT;
		return;
	}
	if (interpreter->lua_lost && interpreter->lua_lost <= slot)
		interpreter->lua_lost = 0;
	interpreter->cursor = slot;
	REPEAT(LUA_ENTRIES, leave_lua, &interpreter);
	depth = interpreter->lua_depth;
	if (depth >= LUA_ENTRIES) {
		if (!interpreter->lua_lost)
			interpreter->lua_lost = slot;
		return;
	}
	MASK(depth, LUA_ENTRIES);
	entry = &interpreter->lua[depth];
	entry->slot = slot;
	entry->state = state;
	entry->layout = layout;
	entry->call = user_word(state + lua->call);
	if (lua->base_call) /* the array of calls may be moved */
		entry->call -= user_word(state + lua->base_call);
	bpf_probe_read_user(&status, 1, (void *)(state + lua->status));
	if (status == LUA_YIELD)
		entry->call = 0;
	interpreter->lua_depth = depth + 1;
	thread->interpreters |= RUNS_LUA;
}

/* Go on by one entry or by one frame. */
INLINE int find_live_turn(struct interpreter_walk *walk)
{
	struct interpreter *interpreter = walk->interpreter;
	u64 frame = interpreter->at, index = interpreter->lua_depth - 1 - interpreter->cursor;
	struct lua_entry *entry;
	u32 place, wanted;

	if (interpreter->cursor >= interpreter->lua_depth)
		return 1;
	MASK(index, LUA_ENTRIES);
	entry = &interpreter->lua[index];
	MASK(frame, MAX_FRAMES + 1);
	place = frame < walk->thread->stack.depth ? walk->thread->places[frame] : 0xffffffff;
	wanted = entry->slot + 8 - interpreter->origin;
	if (entry->slot < interpreter->origin) { /* over, and below all that is walked */
		entry->is_live = 0;
		interpreter->cursor++;
	} else if (place < wanted) {
		interpreter->at++;
	} else {
		entry->is_live = place == wanted;
		interpreter->cursor++;
	}
	return 0;
}

/* Tell which entries the thread is still in: their return addresses are those of walked frames. */
INLINE void find_live_entries(struct interpreter_walk *walk, struct interpreter *interpreter)
{
	interpreter->cursor = 0;
	interpreter->at = 0;
	REPEAT(MAX_FRAMES + LUA_ENTRIES, find_live, walk);
}

/* The Proto of the Lua function that a call runs, 0 for a C function. */
INLINE u64 lua_proto(struct lua *lua, u64 function)
{
	u64 value[2] = {}; /* closure, type */
	u8 is_c = 0;

	bpf_probe_read_user(value, sizeof(value), (void *)function);
	if ((value[1] & 0x3f) != LUA_FUNCTION)
		return 0;
	if (lua->is_c)
		bpf_probe_read_user(&is_c, 1, (void *)(value[0] + lua->is_c));
	return is_c ? 0 : user_word(value[0] + lua->proto);
}

/* Where the text of a string is. */
INLINE u64 lua_text(struct lua *lua, u64 string)
{
	s8 length = 0;

	if (lua->short_length)
		bpf_probe_read_user(&length, 1, (void *)(string + lua->short_length));
	return length < 0 ? user_word(string + LUA_TEXT) : string + LUA_TEXT;
}

INLINE int add_lua_frame(struct thread *thread, struct interpreter *interpreter, struct lua *lua, u64 layout, u64 proto,
			 u64 pc)
{
	u64 hash = mixed((u64)thread->pid << 16 ^ thread->generation, proto);
	u64 source, lines;
	u32 where;

	if (bpf_probe_read_user(interpreter->words, LUA_PROTO_BYTES, (void *)proto))
		return add_interpreter_frame(interpreter, 0, 0, 0, 0);
	source = word_of(interpreter, lua->source);
	lines = word_of(interpreter, lua->lines);
	hash = mixed(mixed(hash, source), lines);
	hash = mixed(hash, word_of(interpreter, lua->code));
	hash = mixed(hash, (u64)half_of(interpreter, lua->defined) << 32 | half_of(interpreter, lua->line_count));
	__builtin_memset(interpreter->content, 0, sizeof(interpreter->content));
	if (source)
		bpf_probe_read_user_str(interpreter->content, sizeof(interpreter->content),
					(void *)lua_text(lua, source));
#pragma unroll
	for (int i = 0; i < CONTENT_BYTES / 8; i++)
		hash = mixed(hash, interpreter->content[i]);
	where = (u32)((pc - word_of(interpreter, lua->code)) >> 2) - 1;
	if (where >= half_of(interpreter, lua->line_count))
		where = INTERPRETER_NO_LINE;
	else if (lua->absolute)
		hash = mixed_content(interpreter, hash, lines, half_of(interpreter, lua->line_count));
	else
		where = user_half(lines + (u64)where * 4);
	return add_interpreter_frame(interpreter, hash | !hash, where, 0, proto | layout);
}

/* Begin with the next entry, if it is live. */
INLINE int next_lua_entry(struct interpreter_walk *walk, struct interpreter *interpreter)
{
	u64 index = interpreter->cursor - 1;
	struct lua_entry *entry;
	struct lua *lua;

	if (!interpreter->cursor) {
		walk->is_over = 1;
		return 1;
	}
	interpreter->cursor--;
	MASK(index, LUA_ENTRIES);
	entry = &interpreter->lua[index];
	if (!entry->is_live)
		return 0;
	lua = lua_of(entry->layout);
	if (entry->state != interpreter->lua_state) {
		interpreter->lua_state = entry->state;
		interpreter->lua_layout = entry->layout;
		interpreter->at = user_word(entry->state + lua->call);
	}
	interpreter->end = entry->call;
	if (entry->call && lua->base_call)
		interpreter->end += user_word(entry->state + lua->base_call);
	interpreter->place = place_of(interpreter, entry->slot + 8);
	return 0;
}

/* Go on by one call of an entry, or to the next entry; returns whether that was the last one. */
INLINE int lua_call_turn(struct interpreter_walk *walk)
{
	struct interpreter *interpreter = walk->interpreter;
	u64 call, proto, pc, state, layout;
	struct lua *lua;

	if (!interpreter->place)
		return next_lua_entry(walk, interpreter);
	call = interpreter->at;
	state = interpreter->lua_state;
	layout = interpreter->lua_layout;
	lua = lua_of(layout);
	if (!call || call == interpreter->end) {
		if (!add_interpreter_frame(interpreter, 0, 0, interpreter->place, 0))
			return 1;
		interpreter->place = 0;
		return 0;
	}
	if (bpf_probe_read_user(interpreter->words, lua->call_size ? LUA_OLD_CALL_BYTES : LUA_CALL_BYTES, (void *)call))
		return 1;
	proto = lua_proto(lua, word_of(interpreter, lua->function));
	pc = word_of(interpreter, lua->call_pc);
	interpreter->at = word_of(interpreter, lua->previous);
	if (lua->call_size) {
		interpreter->at = call == user_word(state + lua->base_call) ? 0 : call - lua->call_size;
		if (call == user_word(state + lua->call))
			pc = user_word(state + lua->saved_pc);
	}
	return proto && !add_lua_frame(walk->thread, interpreter, lua, layout, proto, pc);
}

/* Go over the live entries, innermost first, and for each over the calls that are its own. */
INLINE void walk_lua(struct thread *thread, struct interpreter *interpreter)
{
	struct interpreter_walk walk = { .thread = thread, .interpreter = interpreter };

	find_live_entries(&walk, interpreter);
	interpreter->cursor = interpreter->lua_depth;
	interpreter->place = 0; /* of the entry that is gone over */
	interpreter->at = 0;
	interpreter->end = 0;
	interpreter->lua_state = 0;
	if (interpreter->lua_lost && interpreter->lua_lost + 8 > interpreter->origin)
		interpreter->stack.is_cut = 1;
	REPEAT(LUA_STEPS, lua_call, &walk);
	if (!walk.is_over)
		interpreter->stack.is_cut = 1;
}

INLINE void copy_lua(struct interpreter *interpreter, u64 proto, u64 layout)
{
	struct interpreter_code *record = &interpreter->record;
	struct lua *lua = lua_of(layout);
	u64 source = user_word(proto + lua->source), size;

	record->first_line = user_half(proto + lua->defined);
	record->name_length = 0;
	record->file_length = 0;
	if (source)
		record->file_length =
			bpf_probe_read_user_str(record->file, INTERPRETER_FILE_BYTES, (void *)lua_text(lua, source));
	record->extra_bytes = 0;
	record->table_bytes = 0;
	record->kind = INTERPRETER_LUA_LINES;
	if (!lua->absolute)
		return;
	record->kind = INTERPRETER_LUA;
	record->extra_bytes = user_half(proto + lua->absolute_count) * 8;
	size = record->extra_bytes;
	if (size > INTERPRETER_EXTRA_BYTES - 1)
		size = INTERPRETER_EXTRA_BYTES - 8;
	MASK(size, INTERPRETER_EXTRA_BYTES);
	bpf_probe_read_user(record->extra, size, (void *)user_word(proto + lua->absolute));
	record->table_bytes = user_half(proto + lua->line_count);
	size = record->table_bytes;
	if (size > INTERPRETER_TABLE_BYTES - 1)
		size = INTERPRETER_TABLE_BYTES - 1;
	MASK(size, INTERPRETER_TABLE_BYTES);
	bpf_probe_read_user(record->table, size, (void *)user_word(proto + lua->lines));
}

#endif
