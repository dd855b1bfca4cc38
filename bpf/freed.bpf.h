// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that were freed lately, and what is wrong with the free of one that
 * is not alive.
 *
 * A set has room for four; the one that was freed first makes place. That
 * malloc handed an address out again needs no note here: then it is alive, and
 * nobody looks here; when it is freed again, it is written over. An array
 * whose look-up the kernel compiles into the program, and no hash map: a free
 * may cost but a few nanoseconds more.
 */
#ifndef REFLEAK_FREED_H
#define REFLEAK_FREED_H

#include "abi.h"
#include "events.bpf.h"
#include "fronts.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

INLINE struct freed_set *freed_set_of(struct key *key)
{
	u64 sets = SHARED->freed_sets;
	u32 index = set_of_block(key, sets);

	return sets ? map_lookup(FREED, &index) : 0;
}

/* Where in the set an address is or is to be: its own place, else that of the one that was freed first. */
INLINE u64 place_in_set(struct freed_set *set, u64 address)
{
	u64 at = 0, first = ~0ULL >> 1;

#pragma unroll
	for (int i = 0; i < FREED_WAYS; i++) {
		u64 time_ns = set->time_ns[i] & -is_any(set->address[i] ^ address);
		u64 earlier = -(at_least(time_ns, first) ^ 1);

		first ^= (first ^ time_ns) & earlier;
		at ^= (at ^ i) & earlier;
	}
	MASK(at, FREED_WAYS);
	return at;
}

/* Remember a block that ended; `birth`: its stack. */
INLINE void remember_freed(struct key *key, u64 birth, u64 size, u64 now)
{
	struct freed_set *set = freed_set_of(key);
	struct freed_block *block;
	u64 at;

	if (!set)
		return;
	at = place_in_set(set, key->address);
	block = &set->block[at];
	set->address[at] = key->address;
	set->time_ns[at] = now;
	block->pid = key->pid;
	block->generation = key->generation;
	block->group = key->group;
	block->stack = birth;
	block->size = size;
	block->release = 0;
}

/* Whether this place of the set has the block of the key. */
INLINE int is_of_key(struct freed_set *set, u64 at, struct key *key)
{
	struct freed_block *block = &set->block[at];

	return set->address[at] == key->address && block->pid == key->pid && block->generation == key->generation &&
	       block->group == key->group;
}

/* A freed block by its key, NULL if it is not known. */
INLINE struct freed_block *find_freed(struct key *key)
{
	struct freed_set *set = freed_set_of(key);
	u64 at;

	if (!set)
		return 0;
	at = place_in_set(set, key->address);
	return is_of_key(set, at, key) ? &set->block[at] : 0;
}

/* Keep the stack that a block was freed at, since it was walked. */
INLINE void keep_release(struct thread *thread, u64 address, u16 group, u64 stack)
{
	struct key key = key_of(thread, address, group);
	struct freed_block *block = find_freed(&key);

	if (block)
		block->release = stack;
}

/* The same of the block that the realloc of the intent has ended, if no other has been at its address since. */
INLINE void keep_realloc(struct thread *thread, u16 group, u64 stack)
{
	struct intent *intent = &thread->intent;
	struct key key = key_of(thread, intent->object, group);
	struct freed_block *block;

	if (intent->operation != OP_REALLOC || !intent->name)
		return;
	block = find_freed(&key);
	if (block && block->stack == intent->name && !block->release)
		block->release = stack;
}

/*
 * Whether the thread is inside of another function that frees the same block:
 * an allocator that is built over another, and gives it the address that it
 * was given.
 */
INLINE int is_inner_free(struct thread *thread, struct key *key, u64 slot)
{
	struct last_free *last = &thread->last_free;

	return thread->intent.operation == OP_FREE && last->address == key->address &&
	       last->site != thread->intent.site && slot <= last->slot;
}

INLINE void note_free(struct thread *thread, u64 address, u64 slot)
{
	struct last_free *last = &thread->last_free;

	last->address = address;
	last->slot = slot;
	last->site = thread->intent.site;
}

/*
 * Whether an address is on the stack that the thread runs on: above the stack
 * pointer, and below the arguments of the program or, in other threads, what
 * the C library keeps of the thread, which it places at the stack's end.
 */
INLINE int is_on_stack(u64 address, u64 sp)
{
	u64 id = bpf_get_current_pid_tgid(), task = bpf_get_current_task(), mm = 0, end = 0;

	if ((u32)id == id >> 32) {
		bpf_probe_read_kernel(&mm, 8, (void *)(task + TASK_MM));
		bpf_probe_read_kernel(&end, 8, (void *)(mm + MM_START_STACK));
	} else {
		bpf_probe_read_kernel(&end, 8, (void *)(task + TASK_FSBASE));
	}
	return at_least(address, sp) & (at_least(address, end) ^ 1) & (at_least(end - sp, STACK_REACH) ^ 1);
}

#define ANCESTORS 4

enum inherited {
	INHERITED_NOTHING,
	INHERITED_BLOCK, /* be it freed since by who made it */
	INHERITED_FREED, /* it was freed before the fork, and not made again until then */
};

/* A search for what an ancestor's address was; the intent is told of the block. */
struct ancestry {
	struct thread *thread;
	struct key key;
	u64 found; /* enum inherited */
};

INLINE u64 inherits(struct thread *thread, struct allocation *block, u64 started_ns)
{
	if (block->time_ns <= started_ns) {
		thread->intent.object = block->stack;
		thread->intent.size = block->size;
		thread->intent.count_read = block->alignment;
	}
	return INHERITED_BLOCK;
}

/* Whether the block was freed by who had it before the process was forked from it: it is as it was by then. */
INLINE u64 inherits_freed(struct thread *thread, struct key *key, u64 alone_ns)
{
	struct freed_set *set = freed_set_of(key);
	u64 at;

	if (!set)
		return INHERITED_NOTHING;
	at = place_in_set(set, key->address);
	if (!is_of_key(set, at, key))
		return INHERITED_NOTHING;
	if (set->time_ns[at] > alone_ns)
		return INHERITED_BLOCK; /* it may have been alive at the fork */
	thread->intent.object = set->block[at].stack;
	thread->intent.value = set->block[at].release;
	thread->intent.size = set->block[at].size;
	return INHERITED_FREED;
}

/* Go to whose memory this one began as a copy of; returns whether the search is at its end. */
INLINE int find_ancestor_turn(struct ancestry *ancestry)
{
	u32 pid = ancestry->key.pid;
	struct process *process = map_lookup(PROCESSES, &pid);
	struct thread *thread = ancestry->thread;
	u64 started_ns, alone_ns;
	struct allocation block;
	struct ghost *ghost;

	if (!process || process->generation != ancestry->key.generation || !process->source)
		return 1;
	ancestry->key.pid = process->source;
	ancestry->key.generation = process->source_generation;
	started_ns = process->started_ns;
	alone_ns = process->alone_ns;
	if (read_block(&ancestry->key, &block)) {
		ancestry->found = inherits(thread, &block, started_ns);
		return 1;
	}
	ghost = map_lookup(GHOSTS, &ancestry->key);
	if (ghost)
		ancestry->found = inherits(thread, &ghost->allocation, started_ns);
	else
		ancestry->found = inherits_freed(thread, &ancestry->key, alone_ns);
	return ancestry->found != INHERITED_NOTHING;
}

INLINE u64 find_inherited(struct thread *thread, struct key *key)
{
	struct ancestry ancestry = { .thread = thread, .key = *key };

	REPEAT(ANCESTORS, find_ancestor, &ancestry);
	return ancestry.found;
}

/* Of 16 bytes, 40 ns each: where many frees are of older blocks, few. libc aborts in most that are in a newer block. */
#define AROUND_STEPS 64
#define AROUND_STEPS_OF_OLDER 8

/* A search for the block that an address lies in, downwards from it: one that is alive, or was at the fork. */
struct around {
	struct key key;
	u64 address;
	u64 birth; /* 0: none was found */
	u64 size;
	u64 distance;
	u64 until_ns; /* of an ancestor's blocks: until the fork; else 0 */
	u64 is_over; /* this ancestor has no other block there */
};

INLINE int find_around_turn(struct around *around, u64 turn)
{
	struct allocation block;
	struct ghost *ghost;
	u64 lies_in;

	around->key.address = ((around->address - 1) & ~15ULL) - (turn << 4);
	if (!read_block(&around->key, &block)) {
		ghost = around->until_ns ? map_lookup(GHOSTS, &around->key) : 0;
		if (!ghost)
			return 0;
		block = ghost->allocation;
	}
	around->distance = around->address - around->key.address;
	lies_in = at_least(block.size, around->distance + 1);
	lies_in &= is_equal(around->until_ns, 0) | at_least(around->until_ns, block.time_ns);
	around->birth = block.stack & -lies_in;
	around->size = block.size & -lies_in;
	return 1;
}

/* The same among the blocks of those whose memory this one began as a copy of, each with AROUND_STEPS turns. */
INLINE int find_around_inherited_turn(struct around *around, u64 turn)
{
	u32 pid = around->key.pid;
	struct process *process;

	if (!(turn & (AROUND_STEPS - 1))) {
		process = map_lookup(PROCESSES, &pid);
		if (!process || process->generation != around->key.generation || !process->source)
			return 1;
		around->key.pid = process->source;
		around->key.generation = process->source_generation;
		around->until_ns = process->started_ns;
		around->is_over = 0;
	}
	if (!around->is_over)
		around->is_over = find_around_turn(around, turn & (AROUND_STEPS - 1));
	return around->birth != 0;
}

INLINE void note_unknown(struct thread *thread, struct key *key, u64 slot, u64 on_stack)
{
	struct unknown_free *last = &thread->unknown_free;

	last->address = key->address;
	last->slot = slot;
	bpf_probe_read_user(&last->back, sizeof(last->back), (void *)slot);
	last->time_ns = bpf_ktime_get_ns();
	last->on_stack = on_stack;
	last->site = thread->intent.site;
}

/*
 * Judge the free of what is neither alive nor was freed lately. Where it may be older than the trace, the stack is worth
 * its walk if the address lies in a block that is known, or is none that malloc gives.
 */
INLINE int is_invalid_free(struct thread *thread, struct key *key, u64 slot)
{
	struct around around = { .key = *key, .address = key->address };
	struct intent *intent = &thread->intent;
	u64 on_stack, are_bad, steps, before, unread, where;

	if (!SHARED->unknown_frees || key->group)
		return 0;
	are_bad = is_equal(SHARED->unknown_frees, UNKNOWN_FREES_ARE_BAD);
	steps = AROUND_STEPS_OF_OLDER + are_bad * (AROUND_STEPS - AROUND_STEPS_OF_OLDER);
	on_stack = is_on_stack(key->address, slot);
	note_unknown(thread, key, slot, on_stack);
	REPEAT(steps, find_around, &around);
	if (thread->is_copy && !around.birth)
		REPEAT(ANCESTORS * AROUND_STEPS, find_around_inherited, &around);
	intent->object = around.birth;
	intent->value = 0;
	intent->size = around.size;
	where = on_stack * WHERE_ON_STACK;
	unread = bpf_probe_read_user(&before, sizeof(before), (void *)(key->address - sizeof(before)));
	where |= is_any(unread) * WHERE_NO_MEMORY;
	intent->count_read = (is_any(around.birth) * around.distance << AROUND_SHIFT) | where;
	intent->flags = ERROR_INVALID_FREE;
	return is_any(are_bad | around.birth | (key->address & 15));
}

/*
 * Judge the free of what is not alive; returns whether it is an error, which
 * then is the intent. With its stack known, send_bad_free says it. Else the
 * intent's object is the birth of an ancestor's block, 0 if that is not known.
 */
INLINE int is_bad_free(struct thread *thread, struct key *key, u64 slot)
{
	struct intent *intent = &thread->intent;
	struct freed_block *block;
	u64 inherited;

	intent->flags = ERROR_NONE;
	intent->object = 0;
	intent->size = 0;
	if (!SHARED->freed_sets || is_inner_free(thread, key, slot))
		return 0;
	intent->address = key->address;
	intent->count_read = 0;
	block = find_freed(key);
	if (block) {
		intent->object = block->stack;
		intent->value = block->release;
		intent->size = block->size;
		intent->flags = ERROR_DOUBLE_FREE;
		return 1;
	}
	inherited = thread->is_copy ? find_inherited(thread, key) : INHERITED_NOTHING;
	intent->flags = inherited == INHERITED_FREED ? ERROR_DOUBLE_FREE : ERROR_NONE;
	if (inherited != INHERITED_NOTHING)
		return inherited == INHERITED_FREED;
	return is_invalid_free(thread, key, slot);
}

INLINE void send_bad_free(struct thread *thread, u16 group, u64 stack)
{
	struct intent *intent = &thread->intent;
	struct event *event = new_event(thread, OP_ERROR, intent->address);

	if (!event)
		return;
	event->error = intent->flags;
	event->group = group;
	event->stack = stack;
	event->birth = intent->object;
	event->release = intent->value;
	event->where = intent->count_read;
	event->block_size = intent->size > 0x7fffffff ? 0x7fffffff : intent->size;
	send_event(event);
}

#endif
