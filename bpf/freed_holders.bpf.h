// SPDX-License-Identifier: GPL-2.0
/*
 * Freed holders: blocks in which pointers to counted objects stand when they
 * are freed. Where no put went with the free, it is missing there.
 *
 * A word is looked up in an array that the kernel compiles the look-up of into
 * the program: it is found in a few nanoseconds whether it is a counted object.
 */
#ifndef REFLEAK_FREED_HOLDERS_H
#define REFLEAK_FREED_HOLDERS_H

#include "abi.h"
#include "events.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define PIECE_BYTES (8 * PIECE_WORDS)
/* Of a block, that are looked at: at each free, and where its stack is walked anyway. */
#define HOLDER_BYTES 512
#define HOLDER_BYTES_LOOKED_AT 8192
/* By the births of blocks: so many held none, and one of sixteen is looked at until one of these holds some; or so many
 * held some, and no more than one of sixteen is told of. */
#define HOLDS_NONE 64
#define HOLDS_SOME 1000
#define HOLDS_OFTEN 2000
#define ONE_OF 16

/* What a place has of an object that is there: no empty one is like a word of zeros. */
#define COUNTED_MARK 0x5ca1ab1e0ddba11ULL

/* A place has one object: another one takes it. */
INLINE u64 place_of_counted(u64 address, u32 pid)
{
	u64 at = ((address >> 4 ^ (u64)pid << 32) * 0x9e3779b97f4a7c15ULL) >> 40;

	MASK(at, ENTRIES(COUNTED_AT));
	return at;
}

INLINE u64 marked_counter(struct key *counter)
{
	return counter->address | (u64)counter->group << 48;
}

/* Have an object found in blocks; `counter`: its key. */
INLINE void note_counted(struct key *counter, u64 object)
{
	u64 at = place_of_counted(object, counter->pid);

	VALUE(COUNTER_OF)->at[at] = marked_counter(counter);
	VALUE(COUNTED_AT)->at[at] = object ^ COUNTED_MARK;
}

INLINE void forget_counted(struct key *counter, u64 object)
{
	u64 at = place_of_counted(object, counter->pid);

	if (VALUE(COUNTED_AT)->at[at] == (object ^ COUNTED_MARK) &&
	    VALUE(COUNTER_OF)->at[at] == marked_counter(counter))
		VALUE(COUNTED_AT)->at[at] = 0;
}

/* Look at a piece of the block, and keep it if a pointer to a counted object is in it; returns whether that was the last. */
INLINE int find_held_turn(struct thread *thread, u64 turn)
{
	struct freed_holder *holder = &thread->freed_holder;
	u64 offset = turn * PIECE_BYTES, bytes = holder->size - offset, others = 1, at;

	if (bytes > PIECE_BYTES)
		bytes = PIECE_BYTES;
	if (bpf_probe_read_user(holder->read, bytes, (void *)(holder->address + offset)))
		return 1;
#pragma unroll
	for (int i = 0; i < PIECE_WORDS; i++) {
		u64 word = holder->read[i], place = place_of_counted(word, thread->pid);

		others &= is_any(VALUE(COUNTED_AT)->at[place] ^ word ^ COUNTED_MARK);
	}
	if (others)
		return 0;
	at = holder->pieces++;
	MASK(at, HOLDER_PIECES);
	holder->offset[at] = offset;
	__builtin_memcpy(holder->word[at], holder->read, PIECE_BYTES);
	return holder->pieces == HOLDER_PIECES;
}

INLINE int is_sampled(u32 held)
{
	return held == HOLDS_NONE || held == HOLDS_OFTEN;
}

/*
 * Find counted objects that a block, which is freed now as one of so many, has
 * pointers to; returns whether it seems to have some.
 */
INLINE int find_held(struct thread *thread, u64 address, struct allocation *block, u64 freed, int is_looked_at)
{
	struct freed_holder *holder = &thread->freed_holder;
	u64 bytes = block->size, most = is_looked_at ? HOLDER_BYTES_LOOKED_AT : HOLDER_BYTES, maker = block->stack;
	u32 *held;

	if (!SHARED->counts_references)
		return 0;
	holder->pieces = 0;
	MASK(maker, ENTRIES(HOLDER_MAKERS));
	held = &VALUE(HOLDER_MAKERS)->at[maker];
	if (bytes < 8 || (is_sampled(*held) && freed & (ONE_OF - 1) && !is_looked_at))
		return 0;
	holder->address = address;
	holder->size = bytes;
	holder->birth = block->stack;
	if (bytes > most)
		bytes = most;
	REPEAT((bytes + PIECE_BYTES - 1) / PIECE_BYTES, find_held, &thread);
	if (holder->pieces && *held < HOLDS_SOME)
		*held = HOLDS_SOME;
	else if (!is_sampled(*held) && (holder->pieces || *held < HOLDS_NONE))
		*held += 1;
	return holder->pieces != 0;
}

/* Whether the block that was freed last, where the thread is now, has pointers to counted objects. */
INLINE int has_held(struct thread *thread)
{
	return thread->freed_holder.pieces && thread->freed_holder.address == thread->intent.address;
}

/* Tell of the object that a word points to, if it is one and alive, and no part of the block itself. */
INLINE int tell_held_turn(struct thread *thread, u64 turn)
{
	struct freed_holder *holder = &thread->freed_holder;
	u64 at = turn / PIECE_WORDS, number = turn & (PIECE_WORDS - 1), word, offset, place, counter;
	struct object *object;
	struct event *event;
	struct key key;

	if (at >= holder->pieces)
		return 1;
	MASK(at, HOLDER_PIECES);
	word = holder->word[at][number];
	offset = holder->offset[at] + number * 8;
	place = place_of_counted(word, thread->pid);
	if (offset + 8 > holder->size || word - holder->address < holder->size ||
	    VALUE(COUNTED_AT)->at[place] != (word ^ COUNTED_MARK))
		return 0;
	counter = VALUE(COUNTER_OF)->at[place];
	key = key_of(thread, counter & ((1ULL << 48) - 1), counter >> 48);
	object = map_lookup(OBJECTS, &key);
	if (!object || object->object != word)
		return 0;
	event = new_event(thread, OP_HOLDER_FREED, key.address);
	if (!event)
		return 0;
	event->object = word;
	event->stack = holder->freed;
	event->birth = holder->birth;
	event->offset = offset;
	event->block_size = holder->size > 0x7fffffff ? 0x7fffffff : holder->size;
	event->group = key.group;
	event->serial = object->serial;
	send_event(event);
	return 0;
}

#endif
