// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of described functions that a thread is in: those that are not
 * complete at their entry, and those whose inside must not count again.
 *
 * Kept apart from struct thread, so that threads which are in no such call pay
 * nothing for it.
 */
#ifndef REFLEAK_CALLS_H
#define REFLEAK_CALLS_H

#include "abi.h"
#include "allocations.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define INNER_GETS 4

enum call_state {
	CALL_SETTLED = 1, /* what it does was recorded at its entry */
};

#define RETURNED MAX_SITES /* in place of a call's site: it has returned, another one with the same frame has not */

struct call {
	u64 slot; /* address of its return address */
	u64 object; /* 0: known at the return; with SITE_OUT_POINTER: where it will be written */
	u64 address; /* counter, or object; 0: known at the return */
	u64 value; /* create: the type's name; get, put: holder; alloc: bytes */
	u64 time_ns;
	union {
		u64 inner[INNER_GETS]; /* get, create of what is not yet known: what was got within */
		struct allocation old; /* realloc */
	};
	s32 count; /* create: the first count, 0 if to be read; get, put: as read */
	u32 serial; /* put, delete: of the object that may end */
	s32 balance; /* gets minus puts of the same object within */
	u32 changes; /* gets plus puts of the same object within */
	u16 site;
	u16 group;
	u8 operation;
	u8 state;
	u8 flags; /* object flags */
	u8 had_old; /* realloc: enum old_block */
};

struct calls {
	u64 depth;
	u64 found; /* of a loop: in memory, where the verifier does not tell its values apart */
	struct call call[PENDING_DEPTH];
};

_Static_assert(sizeof(struct calls) <= ROOM_OF_calls, "struct calls outgrew its map");

INLINE struct calls *calls_of(u32 tid)
{
	return map_lookup(CALLS, &tid);
}

INLINE struct call *call_at(struct calls *calls, u64 index)
{
	MASK(index, PENDING_DEPTH);
	return &calls->call[index];
}

/* Put back what a realloc that never returned had taken. */
INLINE void abandon_call(struct thread *thread, struct call *call)
{
	struct allocation old;

	if (call->had_old != OLD_TAKEN)
		return;
	old = call->old;
	keep_block(thread, call->address, call->group, &old);
}

/* Where a thread enters or leaves a function. */
struct crossing {
	struct thread *thread;
	struct calls *calls;
	u64 slot;
	u64 site;
};

INLINE int drop_stale_turn(struct crossing *now)
{
	struct calls *calls = now->calls;
	struct call *call;

	if (!calls->depth)
		return 1;
	call = call_at(calls, calls->depth - 1);
	if (call->slot > now->slot || (call->slot == now->slot && call->site != now->site))
		return 1;
	abandon_call(now->thread, call);
	lose(LOSS_PENDING_STALE);
	calls->depth--;
	return 0;
}

/*
 * Forget calls that are gone by longjmp or an exception: whoever enters a
 * function at `slot` has left all that stood below it.
 */
INLINE void drop_stale(struct thread *thread, struct calls *calls, u64 slot, u64 site)
{
	struct crossing now = { .thread = thread, .calls = calls, .slot = slot, .site = site };

	REPEAT(calls->depth, drop_stale, &now);
}

INLINE void note_inner_get(struct call *call, u64 address)
{
	u64 at = call->changes++;

	MASK(at, INNER_GETS);
	call->inner[at] = address;
}

INLINE int has_inner_get(struct call *call, u64 address)
{
	int found = 0;

#pragma unroll
	for (int i = 0; i < INNER_GETS; i++)
		found |= call->inner[i] == address;
	return found;
}

/* Whether a get or put of `address` within `call` is the call's own doing. */
INLINE int change_is_within(struct call *call, u8 operation, u64 address, int is_alive)
{
	if (!call->address) {
		if (!is_alive && call->operation == OP_CREATE)
			return 1;
		if (operation == OP_GET)
			note_inner_get(call, address);
		return 0;
	}
	if (call->address != address)
		return 0;
	call->balance += operation == OP_GET ? 1 : -1;
	call->changes++;
	return 1;
}

/* An operation that may be but the inside of a call. */
struct inside {
	struct calls *calls;
	u64 operation;
	u64 group;
	u64 address;
	u64 is_alive;
};

INLINE int is_within_turn(struct inside *inside, u64 index)
{
	struct call *call = call_at(inside->calls, index);
	u8 operation = inside->operation, outer = call->operation;
	u64 address = inside->address;
	int within = 0;

	if (call->group != inside->group)
		return 0;
	if (outer == OP_NONE)
		within = operation == OP_CREATE || (operation <= OP_DELETE && !inside->is_alive);
	else if (operation == OP_ALLOC || operation == OP_REALLOC)
		within = outer == OP_ALLOC || outer == OP_REALLOC;
	else if (operation == OP_FREE)
		within = outer == OP_FREE || outer == OP_REALLOC;
	else if (operation == OP_CREATE)
		within = outer == OP_CREATE && address && call->address == address;
	else if (operation == OP_DELETE)
		within = (outer == OP_PUT || outer == OP_DELETE) && call->address == address &&
			 !(call->state & CALL_SETTLED);
	else if (outer <= OP_DELETE)
		within = change_is_within(call, operation, address, inside->is_alive);
	if (within)
		inside->calls->found = 1;
	return within;
}

/* Whether an operation is but the inside of one of the calls that the thread is in. */
INLINE int is_within(struct calls *calls, u8 operation, u16 group, u64 address, int is_alive)
{
	struct inside inside = {
		.calls = calls,
		.operation = operation,
		.group = group,
		.address = address,
		.is_alive = is_alive,
	};

	calls->found = 0;
	REPEAT(calls->depth, is_within, &inside);
	return calls->found;
}

/* A new call on the thread's stack of calls; NULL if there is no room, which is counted. */
INLINE struct call *push_call(struct thread *thread, struct calls *calls, u64 slot)
{
	struct call *call;

	if (calls->depth >= PENDING_DEPTH) {
		lose(LOSS_PENDING_FULL);
		return 0;
	}
	call = call_at(calls, calls->depth);
	calls->depth++;
	__builtin_memset(call, 0, sizeof(*call));
	call->slot = slot;
	call->site = thread->intent.site;
	call->operation = thread->intent.operation;
	call->time_ns = bpf_ktime_get_ns();
	return call;
}

INLINE int find_call_turn(struct crossing *now, u64 index)
{
	struct call *call = call_at(now->calls, index);

	if (call->slot == now->slot && call->site == now->site)
		now->calls->found = index + 1;
	return 0;
}

INLINE int drop_returned_turn(struct crossing *now)
{
	struct calls *calls = now->calls;
	struct call *call;

	if (!calls->depth)
		return 1;
	call = call_at(calls, calls->depth - 1);
	if (call->slot != now->slot || call->site != RETURNED)
		return 1;
	calls->depth--;
	return 0;
}

/*
 * The call that returns, taken off the stack with all that it had called; NULL
 * if it was not kept. A function that is described twice (pipe makes two
 * descriptors) has two calls with one frame, whose returns come one by one.
 */
INLINE struct call *pop_call(struct thread *thread, struct calls *calls, u64 slot, u64 site)
{
	struct crossing now = { .thread = thread, .calls = calls, .slot = slot, .site = site };
	struct call *call;
	u64 found;

	calls->found = 0;
	REPEAT(calls->depth, find_call, &now);
	found = calls->found;
	if (!found)
		return 0;
	call = call_at(calls, found - 1);
	if (found < calls->depth && call_at(calls, found)->slot == slot) {
		call->site = RETURNED;
		return call;
	}
	calls->depth = found - 1;
	REPEAT(PENDING_DEPTH, drop_returned, &now);
	return call;
}

#endif
