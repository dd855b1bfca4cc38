// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks are interned by content: a stack's id is the hash of its frames, and
 * its frames are sent once. The map that remembers which ones were sent holds
 * what was allocated there too, so that interning costs no look-up of its own.
 */
#ifndef REFLEAK_STACKS_H
#define REFLEAK_STACKS_H

/* Give the walked stack its id, send it if it is new; returns its totals or NULL. */
INLINE struct stack_totals *intern_stack(struct thread *thread, u64 *id)
{
	struct stack *stack = &thread->stack;
	u64 depth = stack->depth;
	struct stack_totals none = {};
	struct stack_totals *totals;
	u64 hash = thread->walk.hash ^ thread->walk.status;

	if (thread->walk.known) {
		*id = thread->walk.known;
		return find(MAP(STACKS), id);
	}
	hash *= 0xff51afd7ed558ccdULL;
	hash ^= hash >> 32;
	hash |= hash == 0;	/* 0 is "no stack" */
	*id = hash;
	totals = find(MAP(STACKS), &hash);
	if (totals) {
		remember_walk(thread, hash);
		return totals;
	}
	stack->id = hash;
	stack->status = thread->walk.status;
	MASK(depth, MAX_FRAMES + 1);
	if (bpf_ringbuf_output(MAP(STACK_RING), stack, 16 + depth * 8, WAKE_NEVER)) {
		lose(LOSS_STACKS_FULL);
		return 0;
	}
	if (put(MAP(STACKS), &hash, &none, NOEXIST)) {
		totals = find(MAP(STACKS), &hash);
		if (!totals)
			lose(LOSS_TOTALS_FULL);
		return totals;
	}
	return find(MAP(STACKS), &hash);
}

INLINE void count_made(struct stack_totals *totals, u64 size)
{
	if (!totals)
		return;
	add(&totals->made, 1);
	add(&totals->made_bytes, size);
}

INLINE void count_freed(u64 stack, u64 size, u64 life_ns)
{
	struct stack_totals *totals = find(MAP(STACKS), &stack);

	if (!totals)
		return;
	add(&totals->freed, 1);
	add(&totals->freed_bytes, size);
	add(&totals->life_ns, life_ns);
	if (!totals->life_min_ns || life_ns < totals->life_min_ns)
		totals->life_min_ns = life_ns;
	if (life_ns > totals->life_max_ns)
		totals->life_max_ns = life_ns;
}

#endif
