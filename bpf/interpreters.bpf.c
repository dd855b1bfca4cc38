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
#include "registers.h"
#include "stacks.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

/* Name the stack, and go on with what it was walked for. */
INLINE void finish_guest(struct pt_regs *ctx, struct thread *thread, struct guest *guest)
{
	thread->walk.known = guest->stack.native;
	tally(COUNT_GUEST_WALKS, 1);
	tally(COUNT_GUEST_FRAMES, guest->stack.depth);
	if (guest->stack.depth) {
		u64 id = id_of_hash(guest->hash ^ guest->stack.is_cut);

		guest->stack.id = id;
		if (!map_lookup(STACKS, &id)) {
			tail_call(ctx, MAP(PROGRAMS), PROGRAM_GUEST_KEEP);
			goto done;
		}
		thread->walk.known = id;
	}
done:
	tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
	lose(LOSS_UNWIND_REFUSED);
}

int guest(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct guest *guest;
	u64 native, memo;

	if (!thread)
		return 0;
	native = thread->walk.known;
	if (!native)
		intern_stack(thread, &native);
	guest = make_guest(thread->tid);
	if (!guest) {
		lose(LOSS_THREADS_FULL);
		tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
		lose(LOSS_UNWIND_REFUSED);
		return 0;
	}
	memo = thread->walk.memo;
	MASK(memo, MEMOS);
	if (!thread->walk.known) {
		__builtin_memcpy(guest->places[memo], thread->places, sizeof(thread->places));
		guest->places[memo][MAX_FRAMES] = thread->stack.depth;
	}
	guest->origin = thread->memo[memo].sp;
	guest->hash = native * 0x9e3779b97f4a7c15ULL;
	guest->stack.native = native;
	guest->stack.depth = 0;
	guest->stack.is_cut = 0;
	if (thread->guest & RUNS_PYTHON)
		walk_python(thread, guest);
	if (thread->guest & RUNS_LUA)
		walk_lua(thread, guest, memo);
	if (thread->guest & RUNS_LUAJIT) {
		guest->luajit.index = 0;
		guest->luajit.c_frame = 0;
		guest->luajit.place = 0;
		tail_call(ctx, MAP(PROGRAMS), PROGRAM_GUEST_LUAJIT);
	}
	finish_guest(ctx, thread, guest);
	return 0;
}

int guest_luajit(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct guest *guest;

	if (!thread)
		return 0;
	guest = guest_of(thread->tid);
	if (!guest)
		return 0;
	walk_luajit(thread, guest, thread->walk.memo);
	finish_guest(ctx, thread, guest);
	return 0;
}

/* Send what is not yet known of the code that a frame runs. */
INLINE void keep_code(struct thread *thread, struct guest *guest, u64 index)
{
	u64 object, size, id, yes = 1;

	MASK(index, GUEST_FRAMES);
	id = guest->stack.frames[index].code;
	if (!id || map_lookup(GUEST_CODES, &id))
		return;
	object = guest->objects[index];
	guest->record.id = id;
	if (object & 7)
		copy_lua(guest, object & ~7ULL, object & 7);
	else
		copy_python(thread, guest, object);
	size = guest->record.table_bytes;
	if (size > GUEST_TABLE_BYTES - 1)
		size = GUEST_TABLE_BYTES - 1;
	MASK(size, GUEST_TABLE_BYTES);
	if (bpf_ringbuf_output(MAP(GUEST_RING), &guest->record, sizeof(guest->record) - GUEST_TABLE_BYTES + size,
			       WAKE_NEVER))
		lose(LOSS_GUESTS_FULL);
	else if (map_update(GUEST_CODES, &id, &yes, ANY))
		lose(LOSS_GUESTS_FULL);
}

INLINE int keep_code_turn(struct guest_walk *walk, u64 index)
{
	keep_code(walk->thread, walk->guest, index);
	return 0;
}

/* Send a stack that is seen for the first time, with the code that its frames run. */
int guest_keep(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct guest_walk walk = {};
	struct guest *guest;
	u64 depth, memo, id;

	if (!thread)
		return 0;
	guest = guest_of(thread->tid);
	if (!guest)
		return 0;
	walk.thread = thread;
	walk.guest = guest;
	REPEAT(guest->stack.depth, keep_code, &walk);
	memo = thread->walk.memo;
	MASK(memo, MEMOS);
	__builtin_memcpy(guest->stack.places, guest->places[memo], sizeof(guest->stack.places));
	guest->stack.kind = GUEST_STACK;
	guest->stack.native_depth = guest->places[memo][MAX_FRAMES];
	id = guest->stack.id;
	depth = guest->stack.depth;
	if (depth > GUEST_FRAMES)
		depth = GUEST_FRAMES;
	BARRIER(depth);
	if (depth <= GUEST_FRAMES &&
	    !bpf_ringbuf_output(MAP(GUEST_RING), &guest->stack,
				sizeof(guest->stack) - (GUEST_FRAMES - depth) * sizeof(struct guest_frame),
				WAKE_NEVER)) {
		thread->walk.known = id;
		if (map_update(STACKS, &id, BLANK(STACKS), NOEXIST) && !map_lookup(STACKS, &id))
			lose(LOSS_TOTALS_FULL);
	} else {
		lose(LOSS_GUESTS_FULL);
	}
	tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}

/* A function that enters Lua, or that ends code of Python. */
int on_guest(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	READ_REGISTERS(registers, ctx);
	struct guest *guest;
	struct site *site;

	if (!thread)
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	if (site->operation == OP_CODE_END) {
		python_code_ends(thread, value_at(ctx, registers, &site->object));
		return 0;
	}
	guest = make_guest(thread->tid);
	if (!guest) {
		lose(LOSS_THREADS_FULL);
		return 0;
	}
	if (!thread->guest) { /* of walks until now no places are known */
#pragma unroll
		for (int i = 0; i < MEMOS; i++)
			thread->memo[i].pc = 0;
	}
	lua_entered(thread, guest, ctx->sp + site->return_distance, value_at(ctx, registers, &site->object),
		    site->type);
	return 0;
}
