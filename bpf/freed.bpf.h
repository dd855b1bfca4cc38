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
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

INLINE struct freed_set *freed_set_of(struct key *key)
{
	u64 sets = SHARED->freed_sets;
	u64 hash = ((key->address >> 4) ^ ((u64)key->pid << 32)) * 0x9e3779b97f4a7c15ULL;
	u32 index = (hash >> 40) & (sets - 1);

	return sets ? map_lookup(FREED, &index) : 0;
}

/* 1 if the words differ, else 0; without a branch, as all of a search here: each would double the verifier's paths. */
INLINE u64 differ(u64 a, u64 b)
{
	u64 bits = a ^ b;

	BARRIER(bits);
	bits = (bits | -bits) >> 63;
	BARRIER(bits);
	return bits;
}

/* Where in the set an address is or is to be: its own place, else that of the one that was freed first. */
INLINE u64 place_in_set(struct freed_set *set, u64 address)
{
	u64 at = 0, first = ~0ULL >> 1;

#pragma unroll
	for (int i = 0; i < FREED_WAYS; i++) {
		u64 time_ns = set->time_ns[i] & -differ(set->address[i], address);
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

/* A freed block by its key, NULL if it is not known. */
INLINE struct freed_block *find_freed(struct key *key)
{
	struct freed_set *set = freed_set_of(key);
	struct freed_block *block;
	u64 at;

	if (!set)
		return 0;
	at = place_in_set(set, key->address);
	block = &set->block[at];
	if (set->address[at] != key->address || block->pid != key->pid || block->generation != key->generation ||
	    block->group != key->group)
		return 0;
	return block;
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
	return address >= sp && address < end && end - sp < STACK_REACH;
}

#define ANCESTORS 4

/* Whether the address is that of a block of one whose memory this process began as a copy of, be it freed since. */
INLINE int is_ancestors(struct thread *thread, u64 address, u16 group)
{
	struct key key = key_of(thread, address, group);

#pragma unroll
	for (int i = 0; i < ANCESTORS; i++) {
		u32 pid = key.pid;
		struct process *process = map_lookup(PROCESSES, &pid);

		if (!process || process->generation != key.generation || !process->source)
			return 0;
		key.pid = process->source;
		key.generation = process->source_generation;
		if (map_lookup(LIVE, &key) || map_lookup(GHOSTS, &key))
			return 1;
	}
	return 0;
}

/*
 * Judge the free of what is not alive; returns whether it is an error, which
 * then is the intent. With its stack known, send_bad_free says it.
 */
INLINE int is_bad_free(struct thread *thread, struct key *key, u64 slot)
{
	struct intent *intent = &thread->intent;
	struct freed_block *block;

	intent->flags = ERROR_NONE;
	if (!SHARED->freed_sets || is_inner_free(thread, key, slot))
		return 0;
	intent->address = key->address;
	block = find_freed(key);
	if (block) {
		intent->object = block->stack;
		intent->value = block->release;
		intent->size = block->size;
		intent->count_read = 0;
		intent->flags = ERROR_DOUBLE_FREE;
		return 1;
	}
	if (!SHARED->unknown_is_bad || key->group ||
	    (thread->is_copy && is_ancestors(thread, key->address, key->group)))
		return 0;
	intent->object = 0;
	intent->value = 0;
	intent->size = 0;
	intent->count_read = is_on_stack(key->address, slot);
	intent->flags = ERROR_INVALID_FREE;
	return 1;
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
	event->on_stack = intent->count_read;
	event->block_size = intent->size > 0x7fffffff ? 0x7fffffff : intent->size;
	send_event(event);
}

#endif
