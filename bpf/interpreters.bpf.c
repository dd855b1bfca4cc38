// SPDX-License-Identifier: GPL-2.0
/* Frames of interpreters: walked once the native stack is known, and made one stack with it. */

#include "abi.h"
#include "interpreters.bpf.h"
#include "locations.bpf.h"
#include "lua.bpf.h"
#include "luajit.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "python.bpf.h"
#include "x86_64.h"
#include "stacks.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

/* Name the stack, and go on with what it was walked for. */
INLINE void finish_interpreter(struct pt_regs *ctx, struct thread *thread, struct interpreter *interpreter)
{
	thread->walk.known = interpreter->stack.native;
	tally(COUNT_INTERPRETER_WALKS, 1);
	tally(COUNT_INTERPRETER_FRAMES, interpreter->stack.depth);
	if (interpreter->stack.depth) {
		u64 id = id_of_hash(interpreter->hash ^ interpreter->stack.is_cut);

		interpreter->stack.id = id;
		if (!map_lookup(STACKS, &id)) {
			tail_call(ctx, MAP(PROGRAMS), PROGRAM_INTERPRETERS_KEEP);
			goto done;
		}
		thread->walk.known = id;
	}
done:
	tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
	lose(LOSS_UNWIND_REFUSED);
}

int interpreters(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct interpreter *interpreter;
	u64 native;

	if (!thread)
		return 0;
	native = thread->walk.known;
	if (!native)
		intern_stack(thread, &native);
	interpreter = make_interpreter(thread->tid);
	if (!interpreter) {
		lose(LOSS_THREADS_FULL);
		tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
		lose(LOSS_UNWIND_REFUSED);
		return 0;
	}
	interpreter->origin = thread->walk.origin;
	interpreter->hash = native * 0x9e3779b97f4a7c15ULL;
	interpreter->stack.native = native;
	interpreter->stack.depth = 0;
	interpreter->stack.is_cut = 0;
	if (thread->interpreters & RUNS_PYTHON)
		walk_python(thread, interpreter);
	if (thread->interpreters & RUNS_LUA)
		walk_lua(thread, interpreter);
	if (thread->interpreters & RUNS_LUAJIT) {
		interpreter->luajit.index = 0;
		interpreter->luajit.c_frame = 0;
		interpreter->luajit.place = 0;
		tail_call(ctx, MAP(PROGRAMS), PROGRAM_INTERPRETERS_LUAJIT);
	}
	finish_interpreter(ctx, thread, interpreter);
	return 0;
}

int interpreters_luajit(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct interpreter *interpreter;

	if (!thread)
		return 0;
	interpreter = interpreter_of(thread->tid);
	if (!interpreter)
		return 0;
	walk_luajit(thread, interpreter);
	finish_interpreter(ctx, thread, interpreter);
	return 0;
}

/* Send what is not yet known of the code that a frame runs. */
INLINE void keep_code(struct thread *thread, struct interpreter *interpreter, u64 index)
{
	u64 object, size, slot, id, yes = 1;

	MASK(index, INTERPRETER_FRAMES);
	id = interpreter->stack.frames[index].code;
	slot = id;
	MASK(slot, KNOWN_CODES);
	if (!id || interpreter->sent[slot] == id)
		return;
	if (map_lookup(INTERPRETER_CODES, &id)) {
		interpreter->sent[slot] = id;
		return;
	}
	object = interpreter->objects[index];
	interpreter->record.id = id;
	if (object & 7)
		copy_lua(interpreter, object & ~7ULL, object & 7);
	else
		copy_python(thread, interpreter, object);
	size = interpreter->record.table_bytes;
	if (size > INTERPRETER_TABLE_BYTES - 1)
		size = INTERPRETER_TABLE_BYTES - 1;
	MASK(size, INTERPRETER_TABLE_BYTES);
	if (bpf_ringbuf_output(MAP(INTERPRETER_RING), &interpreter->record,
			       sizeof(interpreter->record) - INTERPRETER_TABLE_BYTES + size, WAKE_NEVER))
		lose(LOSS_INTERPRETERS_FULL);
	else if (map_update(INTERPRETER_CODES, &id, &yes, ANY))
		lose(LOSS_INTERPRETERS_FULL);
}

INLINE int keep_code_turn(struct interpreter_walk *walk, u64 index)
{
	keep_code(walk->thread, walk->interpreter, index);
	return 0;
}

/* Send a stack that is seen for the first time, with the code that its frames run. */
int interpreters_keep(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct interpreter_walk walk = {};
	struct interpreter *interpreter;
	u64 depth, id;

	if (!thread)
		return 0;
	interpreter = interpreter_of(thread->tid);
	if (!interpreter)
		return 0;
	walk.thread = thread;
	walk.interpreter = interpreter;
	REPEAT(interpreter->stack.depth, keep_code, &walk);
	__builtin_memcpy(interpreter->stack.places, thread->places, sizeof(interpreter->stack.places));
	interpreter->stack.kind = INTERPRETER_STACK;
	interpreter->stack.native_depth = thread->stack.depth;
	id = interpreter->stack.id;
	depth = interpreter->stack.depth;
	if (depth > INTERPRETER_FRAMES)
		depth = INTERPRETER_FRAMES;
	BARRIER(depth);
	if (depth <= INTERPRETER_FRAMES &&
	    !bpf_ringbuf_output(MAP(INTERPRETER_RING), &interpreter->stack,
				sizeof(interpreter->stack) -
					(INTERPRETER_FRAMES - depth) * sizeof(struct interpreter_frame),
				WAKE_NEVER)) {
		thread->walk.known = id;
		if (map_update(STACKS, &id, BLANK(STACKS), NOEXIST) && !map_lookup(STACKS, &id))
			lose(LOSS_TOTALS_FULL);
	} else {
		lose(LOSS_INTERPRETERS_FULL);
	}
	tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}

/* A function that enters Lua, or that ends code of Python. */
int on_interpreter(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	READ_REGISTERS(registers, ctx);
	struct interpreter *interpreter;
	struct site *site;

	if (!thread || is_of_other(thread, index))
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	if (site->operation == OP_CODE_END) {
		python_code_ends(thread, value_at(ctx, registers, &site->object));
		return 0;
	}
	interpreter = make_interpreter(thread->tid);
	if (!interpreter) {
		lose(LOSS_THREADS_FULL);
		return 0;
	}
	lua_entered(thread, interpreter, STACK_POINTER(ctx) + site->return_distance,
		    value_at(ctx, registers, &site->object), site->type);
	return 0;
}
