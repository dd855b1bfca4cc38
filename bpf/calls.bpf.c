// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that specs describe: their calls may nest, succeed or fail, and
 * give their object back. What changes a count is recorded at the entry where
 * it is known there, like the built-in functions; else at the return.
 */

#include "abi.h"
#include "allocations.bpf.h"
#include "calls.bpf.h"
#include "freed.bpf.h"
#include "locations.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "x86_64.h"
#include "selection.bpf.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"

INLINE u64 counter_of(struct site *site, u64 object)
{
	u64 at = object + (s64)site->counter.adjust;

	if (!(site->flags & SITE_COUNTER))
		return object;
	if (site->counter.dereference) {
		u64 pointer = 0;

		if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)at))
			lose(LOSS_ARGUMENT_UNREAD);
		at = pointer;
	}
	return at ? at + (s64)site->counter.offset : 0;
}

/* Set what is known of the object, and read its counter. */
INLINE void intend_object(struct thread *thread, struct site *site, u64 object)
{
	struct intent *intent = &thread->intent;

	intent->object = object;
	intent->address = object ? counter_of(site, object) : 0;
	intent->flags = 0;
	intent->count_read = 0;
	if (!(site->flags & SITE_COUNTER) || !intent->address ||
	    bpf_probe_read_user(&intent->count_read, sizeof(intent->count_read), (void *)intent->address))
		intent->flags = OBJECT_COUNT_UNREAD;
	else if (site->flags & SITE_FOLLOWS)
		intent->flags = OBJECT_FOLLOWS;
}

INLINE int has_failed(struct pt_regs *ctx, struct site *site)
{
	u64 result = RETURN_VALUE(ctx);
	u8 rule = site->failure;

	if (rule == FAILURE_NULL)
		return !result;
	if (rule == FAILURE_NEGATIVE)
		return (s32)result < 0;
	if (rule == FAILURE_NONZERO)
		return (s32)result != 0;
	return 0;
}

INLINE struct calls *enter_calls(struct thread *thread, u64 slot, u64 site)
{
	struct calls *calls = calls_of(thread->tid);

	if (calls) {
		drop_stale(thread, calls, slot, site);
		return calls;
	}
	map_update(CALLS, &thread->tid, BLANK(CALLS), NOEXIST);
	calls = calls_of(thread->tid);
	if (!calls)
		lose(LOSS_THREADS_FULL);
	return calls;
}

/* Free and realloc take their block at once: in between another thread can be given the same address. */
INLINE void block_entered(struct thread *thread, struct site *site, struct call *call, u64 address, u64 slot)
{
	struct allocation block;

	if (!address)
		return;
	if (!take_block(thread, address, site->group, &block)) {
		thread->intent.then = PROGRAM_UNKNOWN_FREE;
	} else if (site->operation == OP_FREE) {
		note_free(thread, address, slot);
		look_at_described_free(thread, site, &block, slot);
	} else if (call) {
		call->had_old = OLD_TAKEN;
		call->old = block;
	}
}

INLINE int is_memory(u8 operation)
{
	return operation >= OP_ALLOC && operation <= OP_FREE;
}

INLINE int is_settled_at_entry(struct site *site)
{
	u8 operation = site->operation;

	if (site->failure || site->flags & SITE_OUT_POINTER || site->object.kind == AT_RETURN)
		return 0;
	return operation == OP_GET || operation == OP_PUT || operation == OP_DELETE;
}

/* Keep the call until its return. */
INLINE void keep_call(struct thread *thread, struct site *site, struct calls *calls, u64 slot, u64 object)
{
	struct call *call = push_call(thread, calls, slot);
	struct intent *intent = &thread->intent;
	u8 operation = site->operation;

	if (!call)
		return;
	call->group = site->group;
	call->object = object;
	call->address = intent->address;
	call->value = intent->value;
	call->count = operation == OP_CREATE ? intent->count : intent->count_read;
	call->flags = intent->flags;
	if (is_settled_at_entry(site))
		call->state = CALL_SETTLED;
	if (is_memory(operation))
		return block_entered(thread, site, call, intent->address, slot);
	if (!(call->state & CALL_SETTLED) && (operation == OP_PUT || operation == OP_DELETE)) {
		struct key key = key_of(thread, intent->address, site->group);
		struct object *object = map_lookup(OBJECTS, &key);

		if (object) {
			call->serial = object->serial;
			object->flags |= OBJECT_ENDING;
		}
	}
}

/* Read what the site says of the call's arguments. */
INLINE u64 read_call(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	READ_REGISTERS(registers, ctx);
	struct intent *intent = &thread->intent;
	u64 object = site->object.kind == AT_RETURN ? 0 : value_at(ctx, registers, &site->object);

	if (is_memory(site->operation)) {
		u64 size = value_at(ctx, registers, &site->size);

		intent->value = site->flags & SITE_PRODUCT ? size * value_at(ctx, registers, &site->count) : size;
		intent->address = site->flags & SITE_OUT_POINTER ? 0 : object;
		intent->count = 0;
		intent->flags = 0;
		intent->then = 0;
		return object;
	}
	intend_object(thread, site, site->flags & SITE_OUT_POINTER ? 0 : object);
	if (site->flags & SITE_INLINED && !(intent->flags & OBJECT_COUNT_UNREAD))
		intent->count_read -= (s32)value_at(ctx, registers, &site->size);
	intent->count = site->count.kind ? value_at(ctx, registers, &site->count) : 0;
	intent->value =
		value_at(ctx, registers,
			 site->operation == OP_CREATE || site->operation == OP_NAME ? &site->name : &site->holder);
	return object;
}

int on_call(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	u64 slot, object;
	struct intent *intent;
	struct calls *calls;
	struct site *site;
	struct key key;
	u32 then;
	int alive;

	if (!thread || is_of_other(thread, index))
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	slot = STACK_POINTER(ctx) + (site->flags & SITE_INLINED ? 0 : site->return_distance);
	intent = &thread->intent;
	intent->site = index;
	intent->operation = site->operation;
	calls = enter_calls(thread, slot, index);
	if (!calls)
		return 0;
	object = read_call(ctx, thread, site);
	if (!object && site->object.kind != AT_RETURN && site->operation && site->operation != OP_REALLOC)
		return 0;
	key = key_of(thread, intent->address, site->group);
	alive = calls->depth && intent->address && !is_memory(site->operation) && map_lookup(OBJECTS, &key);
	if (site->operation && site->operation != OP_NAME &&
	    is_within(calls, site->operation, site->group, intent->address, alive))
		return 0;
	if (!(site->flags & SITE_ENTRY_RESULT))
		keep_call(thread, site, calls, slot, object);
	else if (site->operation == OP_FREE)
		block_entered(thread, site, 0, intent->address, slot);
	if (is_memory(site->operation)) {
		then = intent->then;
		if (then == PROGRAM_UNKNOWN_FREE)
			judge_unknown(ctx, thread, intent->address);
		if (then != PROGRAM_FREED)
			return 0;
	} else {
		if (!is_settled_at_entry(site) && !(site->operation == OP_CREATE && site->flags & SITE_ENTRY_RESULT))
			return 0;
		if (!intent->count)
			intent->count = 1;
		intent->name = intent->value;
		then = site->operation == OP_DELETE ? PROGRAM_DELETE : PROGRAM_REFERENCE;
	}
	walk_from_entry(ctx, thread, site, then);
	return 0;
}

INLINE u64 made_by(struct pt_regs *ctx, struct site *site, struct call *call)
{
	u64 object = call->object;

	if (site->object.kind == AT_RETURN) {
		READ_REGISTERS(registers, ctx);

		return has_failed(ctx, site) ? 0 : value_at(ctx, registers, &site->object);
	}
	if (site->flags & SITE_OUT_POINTER) {
		u64 out = 0;

		if (has_failed(ctx, site))
			return 0;
		if (bpf_probe_read_user(&out, sizeof(out), (void *)object))
			lose(LOSS_ARGUMENT_UNREAD);
		/* `size` of a reference: of what is written. */
		return site->operation == OP_CREATE && site->size.kind ? (u64)(s32)out : out;
	}
	return has_failed(ctx, site) ? 0 : object;
}

/* This and those below say which program is to run with the stack of the call that returns; 0: none. */
INLINE u32 memory_returned(struct pt_regs *ctx, struct thread *thread, struct site *site, struct call *call)
{
	struct intent *intent = &thread->intent;
	struct allocation old;

	if (site->operation == OP_FREE)
		return 0;
	if (site->flags & SITE_OUT_POINTER || site->operation == OP_ALLOC)
		intent->address = made_by(ctx, site, call);
	else
		intent->address = has_failed(ctx, site) ? 0 : RETURN_VALUE(ctx);
	intent->size = call->value;
	intent->value = 0;
	intent->name = 0;
	if (call->had_old) {
		old = call->old; /* fewer paths for the verifier than from the map */
		settle_old(thread, site, call->had_old, call->address, &old);
		intent->object = call->address;
		intent->name = call->had_old == OLD_TAKEN ? old.stack : 0;
		if (!intent->address && intent->name && has_freed_only(thread, site, call->address))
			return PROGRAM_FREED;
	}
	return intent->address && block_made(thread, intent->size, 0) ? PROGRAM_ALLOCATED : 0;
}

/* Whether the intended object was made by a traced function that this call called. */
INLINE int was_made_within(struct thread *thread, struct site *site, struct call *call)
{
	struct key key = key_of(thread, thread->intent.address, site->group);
	struct object *object = map_lookup(OBJECTS, &key);

	return object && object->tid == thread->tid && object->time_ns >= call->time_ns;
}

INLINE int is_alive(struct thread *thread, struct site *site)
{
	struct key key = key_of(thread, thread->intent.address, site->group);

	return map_lookup(OBJECTS, &key) != 0;
}

INLINE u32 create_returned(struct pt_regs *ctx, struct thread *thread, struct site *site, struct call *call)
{
	struct intent *intent = &thread->intent;

	intend_object(thread, site, made_by(ctx, site, call));
	if (!intent->address || was_made_within(thread, site, call))
		return 0;
	if (site->flags & SITE_SHARES && is_alive(thread, site)) {
		if (has_inner_get(call, intent->address))
			return 0;
		intent->operation = OP_GET;
		intent->value = 0;
		intent->count_read -= !(intent->flags & OBJECT_COUNT_UNREAD);
		return PROGRAM_REFERENCE;
	}
	intent->name = call->value;
	intent->count = call->count;
	if (!intent->count)
		intent->count = intent->flags & OBJECT_COUNT_UNREAD || intent->count_read < 1 ? 1 : intent->count_read;
	return PROGRAM_REFERENCE;
}

/* A get that gives its object back, or succeeds or not. */
INLINE u32 get_returned(struct pt_regs *ctx, struct thread *thread, struct site *site, struct calls *calls,
			struct call *call)
{
	struct intent *intent = &thread->intent;
	u64 made;

	intent->value = call->value;
	if (call->state & CALL_SETTLED) {
		/* What it called took as many references as it dropped: it has only looked like a get. */
		if (!call->changes || call->balance)
			return 0;
		intent->operation = OP_PUT;
		intent->object = call->object;
		intent->address = call->address;
		intent->count_read = call->count + 1;
		intent->flags = call->flags;
		return PROGRAM_REFERENCE;
	}
	made = made_by(ctx, site, call);
	if (!made)
		return 0;
	intend_object(thread, site, made);
	if (!intent->address)
		return 0;
	if (!call->address && (has_inner_get(call, intent->address) || was_made_within(thread, site, call) ||
			       is_within(calls, OP_GET, site->group, intent->address, 1)))
		return 0;
	intent->count_read -= !(intent->flags & OBJECT_COUNT_UNREAD);
	return PROGRAM_REFERENCE;
}

/* A put or delete that may fail: then nothing happened, but for one of an object that had ended. */
INLINE u32 end_returned(struct pt_regs *ctx, struct thread *thread, struct site *site, struct call *call)
{
	struct key key = key_of(thread, call->address, site->group);
	struct object *object = map_lookup(OBJECTS, &key);
	struct intent *intent = &thread->intent;
	int failed = has_failed(ctx, site);

	if (call->state & CALL_SETTLED)
		return 0;
	if (object && object->serial == call->serial) {
		object->flags &= ~OBJECT_ENDING;
		if (failed)
			return 0;
	} else if (object || call->serial) {
		return 0; /* ended meanwhile, by the thread that was given its place */
	} else if (!failed) {
		map_delete(RELEASED, &key); /* it was alive: made where no probe is */
		return 0;
	}
	intent->object = call->object;
	intent->address = call->address;
	intent->value = call->value;
	intent->count_read = call->count;
	intent->flags = call->flags;
	if (!object && !map_lookup(RELEASED, &key))
		return 0;
	return object && site->operation == OP_DELETE ? PROGRAM_DELETE : PROGRAM_REFERENCE;
}

INLINE void name_returned(struct pt_regs *ctx, struct thread *thread, struct site *site, struct call *call)
{
	struct key key = key_of(thread, RETURN_VALUE(ctx), site->group);
	u64 type;

	if (!key.address)
		return;
	type = type_of_name(thread, call->value);
	if (map_update(HANDLES, &key, &type, ANY))
		lose(LOSS_TYPES_FULL);
}

/* Walk the stack of the call that returns, then do it. */
INLINE void settle(struct pt_regs *ctx, struct thread *thread, u32 program)
{
	if (begin_walk(thread, PROGRAM_COUNTER(ctx), STACK_POINTER(ctx), FRAME_POINTER(ctx)))
		go_on(ctx, thread, program);
	else
		walk_then(ctx, thread, program);
}

int on_call_return(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	struct calls *calls;
	struct call *call;
	struct site *site;
	u32 program = 0;
	u8 operation;

	if (!thread)
		return 0;
	calls = calls_of(thread->tid);
	if (!calls)
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	call = pop_call(thread, calls, STACK_POINTER(ctx) - 8, index);
	if (!call)
		return 0;
	operation = site->operation;
	thread->intent.site = index;
	thread->intent.operation = operation;
	if (is_memory(operation))
		program = memory_returned(ctx, thread, site, call);
	else if (operation == OP_CREATE)
		program = create_returned(ctx, thread, site, call);
	else if (operation == OP_GET)
		program = get_returned(ctx, thread, site, calls, call);
	else if (operation == OP_NAME)
		name_returned(ctx, thread, site, call);
	else if (operation)
		program = end_returned(ctx, thread, site, call);
	if (program)
		settle(ctx, thread, program);
	return 0;
}

/* A free or realloc of what is not alive: an error, or of a block that is older than the trace, or inherited; or an unmap. */
int unknown_free(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct calls *calls;
	struct site *site;
	struct key key;
	u64 index, slot;
	u32 then = 0;
	int is_outer;

	if (!thread)
		return 0;
	index = thread->intent.site;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	slot = STACK_POINTER(ctx) + (site->flags & SITE_INLINED ? 0 : site->return_distance);
	key = key_of(thread, thread->intent.address, site->group);
	if (site->operation == OP_FREE && thread->pending.slot && !is_inside_pending(thread, slot, index))
		drop_pending(&thread->pending); /* what it made is not known: it may be this */
	if (site->operation == OP_UNMAP)
		then = PROGRAM_MAPPED;
	else if (is_bad_free(thread, &key, slot))
		then = PROGRAM_FREED;
	if (then == PROGRAM_FREED && thread->is_copy)
		inherited_freed(&key, bpf_ktime_get_ns()); /* it may be an ancestor's, too far back to know */
	is_outer = site->operation == OP_FREE && !is_inner_free(thread, &key, slot);
	if (is_outer)
		note_free(thread, key.address, slot); /* `delete` calls `free`: together they end a block once */
	if (!then && site->operation == OP_FREE) {
		if (is_outer) {
			unknown_freed(thread, key.address, site->group, thread->intent.object, thread->intent.size);
			if (thread->intent.object && is_worth_a_look(thread->totals.unknown_frees))
				then = PROGRAM_FREED;
		}
		look_at_inherited(ctx, thread, site);
	}
	if (then)
		walk_from_entry(ctx, thread, site, then);
	else if (site->operation == OP_FREE)
		return 0;
	else if (!site->group) {
		thread->pending.had_old = OLD_UNKNOWN;
	} else {
		calls = calls_of(thread->tid);
		if (calls)
			call_at(calls, calls->depth - 1)->had_old = OLD_UNKNOWN;
	}
	return 0;
}
