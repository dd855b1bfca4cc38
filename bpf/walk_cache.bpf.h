// SPDX-License-Identifier: GPL-2.0
/* Walks that a thread remembers: see struct cached_walk. */
#ifndef REFLEAK_WALK_CACHE_H
#define REFLEAK_WALK_CACHE_H

#include "abi.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

/* The frame pointer was read from `slot`: a word to compare only if the walk comes to depend on it. */
INLINE void restore_bp(struct walk *walk, struct step *step, u64 slot, u64 value)
{
	walk->bp = value;
	step->bp_slot = slot;
}

/* A word that the step depended on, beside the return address. */
INLINE void note(struct step *step, u64 slot, u64 value)
{
	step->extra_slot = slot;
	step->extra = value;
}

/* Read the stack as far as the cached walk read it, and the word below; returns whether that could be read. */
INLINE int read_window(struct thread *thread, struct cached_walk *cached)
{
	u64 size = cached->reach;

	if (size > CACHED_REACH)
		return 0;
	return !bpf_probe_read_user(thread->window, size + 8, (void *)(cached->sp - 8));
}

/* The walk depends on the code at an address, of which `code` was read. */
INLINE void note_code(struct thread *thread, u64 address, u64 code)
{
	u64 index = thread->walk.cache_index, last;
	struct cached_walk *cached;

	MASK(index, CACHED_WALKS);
	cached = &thread->cached[index];
	last = cached->codes;
	if (last >= CACHED_CODES) {
		thread->walk.forgettable = 1;
		return;
	}
	cached->code[last] = address;
	cached->code_hash = mixed(cached->code_hash, code);
	cached->codes = last + 1;
}

/* Whether the code that decided the cached walk is as it was. */
INLINE int has_same_code(struct thread *thread, struct cached_walk *cached)
{
	u64 codes = cached->codes, hash = 0;

#pragma unroll 1
	for (u64 i = 0; i < codes; i++) {
		u64 at = i;

		BARRIER(at);
		if (at >= CACHED_CODES)
			break;
		bpf_probe_read_user(&thread->walk.code, 8, (void *)cached->code[at]); /* zeros where there is nothing */
		hash = mixed(hash, thread->walk.code);
	}
	return hash == cached->code_hash;
}

/* Words of a part of the stack that is in the window; `start`: where that begins, in units of 8 bytes. */
struct compared {
	u64 first;
	u64 words; /* the one after the last */
	u64 start;
};

/* Compare words with the window; returns how many are as they were, of those before the first stride that is not. */
INLINE u64 compare_words(struct thread *thread, struct words *known, struct compared *part)
{
	u64 first = part->first, words = part->words, start = part->start;

#pragma unroll 1
	for (u64 i = 0; i < CACHED_WORDS; i += CACHED_STRIDE) {
		u64 word = first + i, difference = 0;

		if (word >= words)
			break;
		MASK(word, CACHED_WORDS);
#pragma unroll
		for (int j = 0; j < CACHED_STRIDE; j++) {
			u64 place = known->place[word + j] - start;
			u64 counts = -(at_least(word + j, words) ^ 1);

			MASK(place, CACHED_REACH / 8);
			difference |= (thread->window[1 + place] ^ known->value[word + j]) & counts;
		}
		if (difference)
			return word;
	}
	return words;
}

/* Whose parts further out are compared. */
struct comparing {
	struct thread *thread;
	struct cached_walk *cached;
};

INLINE int compare_outer_turn(struct comparing *comparing, u64 index)
{
	struct thread *thread = comparing->thread;
	struct cached_walk *cached = comparing->cached;
	u64 next = index + 1, size;
	struct compared part;
	struct segment *segment;

	MASK(index, CACHED_SEGMENTS);
	MASK(next, CACHED_SEGMENTS);
	segment = &cached->segment[index];
	part.first = segment->first;
	part.words = index + 1 < cached->outer ? cached->segment[next].first : cached->first;
	part.start = segment->start >> 3;
	size = segment->end - segment->start;
	if (size > CACHED_REACH || bpf_probe_read_user(&thread->window[1], size, (void *)segment->start) ||
	    compare_words(thread, &cached->stack_words, &part) != part.words) {
		thread->walk.unchanged = 0;
		return 1;
	}
	return 0;
}

INLINE int is_outer_unchanged(struct thread *thread, struct cached_walk *cached)
{
	struct comparing comparing = { .thread = thread, .cached = cached };

	thread->walk.unchanged = 1;
	REPEAT(cached->outer, compare_outer, &comparing);
	return thread->walk.unchanged;
}

/*
 * Whether the part of the stack that is in the window is as it was in the cached walk. Not by compare_words(): each
 * allocation comes here, and a cached walk's last stride is filled, so that no word need be looked at for whether it
 * counts.
 */
INLINE int is_unchanged(struct thread *thread, struct cached_walk *cached)
{
	u64 first = cached->first, words = cached->words, base = cached->sp >> 3, difference = 0;

#pragma unroll 1
	for (u64 i = 0; i < CACHED_WORDS; i += CACHED_STRIDE) {
		u64 word = first + i;

		if (word >= words)
			break;
		MASK(word, CACHED_WORDS);
#pragma unroll
		for (int j = 0; j < CACHED_STRIDE; j++) {
			u64 place = cached->stack_words.place[word + j] - base;

			MASK(place, CACHED_REACH / 8);
			difference |= thread->window[1 + place] ^ cached->stack_words.value[word + j];
		}
	}
	return !difference && (!cached->codes || has_same_code(thread, cached));
}

/* Fill the cached walk's last stride. */
INLINE void repeat_last_word(struct cached_walk *cached)
{
	u64 last = cached->words - 1;

	MASK(last, CACHED_WORDS);
#pragma unroll
	for (int j = 1; j < CACHED_STRIDE;
	     j++) { /* without a look whether there is room: Linux 6.12 forgets the mask there */
		cached->stack_words.place[last + j] = cached->stack_words.place[last];
		cached->stack_words.value[last + j] = cached->stack_words.value[last];
	}
}

INLINE int is_cached_walk_of(struct thread *thread, struct cached_walk *cached, u64 sp, u64 bp)
{
	return cached->sp == sp && cached->epoch == thread->epoch && (cached->bp == bp || !cached->uses_bp);
}

INLINE struct cached_walk *find_cached_walk(struct thread *thread, u64 index, u64 pc, u64 sp, u64 bp)
{
#pragma unroll
	for (int way = 0; way < 2; way++) {
		u64 place = index ^ way;
		struct cached_walk *cached;

		MASK(place, CACHED_WALKS);
		cached = &thread->cached[place];
		if (cached->pc == pc && is_cached_walk_of(thread, cached, sp, bp)) {
			thread->walk.cache_index = place;
			return cached;
		}
	}
	return 0;
}

/* What one read from the walk's beginning reaches of the trail's words; the rest is read by segments. */
INLINE int split_words(struct cached_walk *cached, struct trail *trail)
{
	u64 segments = trail->segments, last = segments - 1;
	struct segment *segment;

	MASK(last, TRAIL_SEGMENTS);
	segment = &trail->segment[last];
	cached->reach = 0;
	cached->first = trail->words;
	cached->outer = segments;
	if (segments && segment->end - cached->sp <= CACHED_REACH) {
		cached->reach = segment->end - cached->sp;
		cached->first = segment->first;
		cached->outer = segments - 1;
	}
	return cached->outer <= CACHED_SEGMENTS;
}

/* Take the trail's words; returns whether they are within what a cached walk can hold. */
INLINE int copy_words(struct cached_walk *cached, struct trail *trail)
{
	u64 words = trail->words;

	if (!split_words(cached, trail) || (cached->outer && cached->codes))
		return 0;
	cached->words = words;
	bpf_probe_read_kernel(cached->segment, sizeof(cached->segment), trail->segment);
	BARRIER(words);
	if (words > CACHED_WORDS)
		return 0;
	bpf_probe_read_kernel(cached->stack_words.place, words * sizeof(u32), trail->stack_words.place);
	BARRIER(words);
	if (words > CACHED_WORDS)
		return 0;
	bpf_probe_read_kernel(cached->stack_words.value, words * sizeof(u64), trail->stack_words.value);
	return 1;
}

/* Remember the walk that has just ended, and is the trail's, as that of stack `id`. */
INLINE void remember_walk(struct thread *thread, u64 id)
{
	u64 index = thread->walk.cache_index;
	struct cached_walk *cached;

	if (thread->walk.forgettable)
		return;
	MASK(index, CACHED_WALKS);
	cached = &thread->cached[index];
	if (!copy_words(cached, &thread->trail))
		return;
	repeat_last_word(cached);
	cached->stack = id;
	cached->uses_bp = thread->walk.needs_bp;
	cached->pc = thread->walk.start;
}

#endif
