// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks are interned by content: a stack's id is the hash of its frames, and
 * its frames are sent once. The map that remembers which ones were sent holds
 * what was allocated there too, so that interning costs no look-up of its own.
 */
#ifndef REFLEAK_STACKS_H
#define REFLEAK_STACKS_H

#include "abi.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "trails.bpf.h"
#include "verifier.h"
#include "walk_cache.bpf.h"

/* The id of the stack that was walked last. */
INLINE u64 stack_id(struct thread *thread)
{
	return id_of_hash(thread->walk.hash ^ thread->walk.status);
}

/* Give the walked stack its id, send it if it is new; returns its totals or NULL. */
INLINE struct stack_totals *intern_stack(struct thread *thread, u64 *id)
{
	struct stack *stack = &thread->stack;
	u64 depth;
	struct stack_totals *totals;
	u64 hash;

	if (thread->walk.known) {
		*id = thread->walk.known;
		return map_lookup(STACKS, id);
	}
	hash = stack_id(thread);
	*id = hash;
	totals = map_lookup(STACKS, &hash);
	if (totals) {
		remember_walk(thread, hash);
		return totals;
	}
	complete_stack(thread);
	depth = stack->depth;
	stack->id = hash;
	stack->status = thread->walk.status;
	MASK(depth, MAX_FRAMES + 1);
	if (bpf_ringbuf_output(MAP(STACK_RING), stack, 16 + depth * 8, WAKE_NEVER)) {
		lose(LOSS_STACKS_FULL);
		return 0;
	}
	if (map_update(STACKS, &hash, BLANK(STACKS), NOEXIST)) {
		totals = map_lookup(STACKS, &hash);
		if (!totals)
			lose(LOSS_TOTALS_FULL);
		return totals;
	}
	return map_lookup(STACKS, &hash);
}

/* Note how much of what a stack made is alive. Threads that race here may each miss the other's last one. */
INLINE void note_level(struct stack_totals *totals)
{
	s64 alive = totals->made - totals->freed;

	if (alive > (s64)totals->peak)
		totals->peak = alive;
	if (alive > (s64)(totals->level + (totals->level >> 3))) {
		totals->level = alive;
		totals->risen = totals->made;
	}
}

INLINE void count_made(struct stack_totals *totals, u64 size, u32 site)
{
	if (!totals)
		return;
	add(&totals->made, 1);
	add(&totals->made_bytes, size);
	totals->site = site;
	note_level(totals);
}

/* Where a free was called from, as one of 32 bits. */
INLINE u32 caller_bit(u64 caller)
{
	return 1U << ((caller * 0x9e3779b97f4a7c15ULL) >> 59);
}

/* The bin of a life: by halving, without branches, as the unwinder's searches. */
INLINE u64 life_bin(u64 life_ns)
{
	u64 rest = life_ns >> (LIFE_SHIFT - 1);
	u64 bin = 0;

#pragma unroll
	for (int half = 16; half > 0; half >>= 1) {
		u64 step = half & -at_least(rest, 1ULL << half);

		rest >>= step;
		bin += step;
	}
	bin |= -at_least(rest, 2); /* longer than the last bin but one: all go into the last */
	MASK(bin, LIFE_BINS);
	return bin;
}

/*
 * Returns how many were freed, this one included; 1 where they were never seen
 * to be freed from this `caller` before; 0 where no totals are kept.
 */
INLINE u64 count_freed(u64 stack, u64 size, u64 life_ns, u64 caller)
{
	struct stack_totals *totals = map_lookup(STACKS, &stack);

	if (!totals)
		return 0;
	add(&totals->freed, 1);
	__sync_fetch_and_add(&totals->lives[life_bin(life_ns)], 1);
	add(&totals->freed_bytes, size);
	add(&totals->life_ns, life_ns);
	if (!totals->life_min_ns || life_ns < totals->life_min_ns)
		totals->life_min_ns = life_ns;
	if (life_ns > totals->life_max_ns)
		totals->life_max_ns = life_ns;
	if (totals->callers & caller_bit(caller))
		return totals->freed;
	totals->callers |= caller_bit(caller);
	return 1;
}

#endif
