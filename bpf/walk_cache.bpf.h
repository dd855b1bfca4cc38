// SPDX-License-Identifier: GPL-2.0
/* Walks that a thread remembers: see struct memo. */
#ifndef REFLEAK_WALK_CACHE_H
#define REFLEAK_WALK_CACHE_H

#include "abi.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

/* rbp was read from `slot`: a word to compare only if the walk comes to depend on it. */
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

/* Read the stack as far as the memo's walk read it, and the word below; returns whether that could be read. */
INLINE int read_window(struct thread *thread, struct memo *memo)
{
	u64 size = memo->reach;

	if (size > MEMO_REACH)
		return 0;
	return !bpf_probe_read_user(thread->window, size + 8, (void *)(memo->sp - 8));
}

/* The walk depends on the code at an address, of which `code` was read. */
INLINE void note_tail(struct thread *thread, u64 address, u64 code)
{
	u64 index = thread->walk.memo, tail;
	struct memo *memo;

	MASK(index, MEMOS);
	memo = &thread->memo[index];
	tail = memo->tails;
	if (tail >= MEMO_TAILS) {
		thread->walk.forgettable = 1;
		return;
	}
	memo->tail[tail] = address;
	memo->tail_hash = mixed(memo->tail_hash, code);
	memo->tails = tail + 1;
}

/* Whether the code that decided the memo's walk is as it was. */
INLINE int has_same_tails(struct thread *thread, struct memo *memo)
{
	u64 tails = memo->tails, hash = 0;

#pragma unroll 1
	for (u64 i = 0; i < tails; i++) {
		u64 tail = i;

		BARRIER(tail);
		if (tail >= MEMO_TAILS)
			break;
		bpf_probe_read_user(&thread->walk.code, 8, (void *)memo->tail[tail]); /* zeros where there is nothing */
		hash = mixed(hash, thread->walk.code);
	}
	return hash == memo->tail_hash;
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
	for (u64 i = 0; i < MEMO_WORDS; i += MEMO_STRIDE) {
		u64 word = first + i, difference = 0;

		if (word >= words)
			break;
		MASK(word, MEMO_WORDS);
#pragma unroll
		for (int j = 0; j < MEMO_STRIDE; j++) {
			u64 place = known->place[word + j] - start;
			u64 counts = -(at_least(word + j, words) ^ 1);

			MASK(place, MEMO_REACH / 8);
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
	struct memo *memo;
};

INLINE int compare_outer_turn(struct comparing *comparing, u64 index)
{
	struct thread *thread = comparing->thread;
	struct memo *memo = comparing->memo;
	u64 next = index + 1, size;
	struct compared part;
	struct segment *segment;

	MASK(index, MEMO_SEGMENTS);
	MASK(next, MEMO_SEGMENTS);
	segment = &memo->segment[index];
	part.first = segment->first;
	part.words = index + 1 < memo->outer ? memo->segment[next].first : memo->first;
	part.start = segment->start >> 3;
	size = segment->end - segment->start;
	if (size > MEMO_REACH || bpf_probe_read_user(&thread->window[1], size, (void *)segment->start) ||
	    compare_words(thread, &memo->stack_words, &part) != part.words) {
		thread->walk.unchanged = 0;
		return 1;
	}
	return 0;
}

INLINE int is_outer_unchanged(struct thread *thread, struct memo *memo)
{
	struct comparing comparing = { .thread = thread, .memo = memo };

	thread->walk.unchanged = 1;
	REPEAT(memo->outer, compare_outer, &comparing);
	return thread->walk.unchanged;
}

/* Whether the part of the stack that is in the window is as it was in the memo's walk. */
INLINE int is_unchanged(struct thread *thread, struct memo *memo)
{
	u64 first = memo->first, words = memo->words, base = memo->sp >> 3, difference = 0;

#pragma unroll 1
	for (u64 i = 0; i < MEMO_WORDS; i += MEMO_STRIDE) {
		u64 word = first + i;

		if (word >= words)
			break;
		MASK(word, MEMO_WORDS);
#pragma unroll
		for (int j = 0; j < MEMO_STRIDE; j++) {
			u64 place = memo->stack_words.place[word + j] - base;

			MASK(place, MEMO_REACH / 8);
			difference |= thread->window[1 + place] ^ memo->stack_words.value[word + j];
		}
	}
	return !difference && (!memo->tails || has_same_tails(thread, memo));
}

/* Fill the memo's last stride. */
INLINE void repeat_last_word(struct memo *memo)
{
	u64 last = memo->words - 1;

	MASK(last, MEMO_WORDS);
#pragma unroll
	for (int j = 1; j < MEMO_STRIDE;
	     j++) { /* without a look whether there is room: Linux 6.12 forgets the mask there */
		memo->stack_words.place[last + j] = memo->stack_words.place[last];
		memo->stack_words.value[last + j] = memo->stack_words.value[last];
	}
}

INLINE int is_memo_of(struct thread *thread, struct memo *memo, u64 sp, u64 bp)
{
	return memo->sp == sp && memo->epoch == thread->epoch && (memo->bp == bp || !memo->uses_bp);
}

INLINE struct memo *find_memo(struct thread *thread, u64 index, u64 pc, u64 sp, u64 bp)
{
#pragma unroll
	for (int way = 0; way < 2; way++) {
		u64 place = index ^ way;
		struct memo *memo;

		MASK(place, MEMOS);
		memo = &thread->memo[place];
		if (memo->pc == pc && is_memo_of(thread, memo, sp, bp)) {
			thread->walk.memo = place;
			return memo;
		}
	}
	return 0;
}

/* What one read from the walk's beginning reaches of the trail's words; the rest is read by segments. */
INLINE int split_words(struct memo *memo, struct trail *trail)
{
	u64 segments = trail->segments, last = segments - 1;
	struct segment *segment;

	MASK(last, TRAIL_SEGMENTS);
	segment = &trail->segment[last];
	memo->reach = 0;
	memo->first = trail->words;
	memo->outer = segments;
	if (segments && segment->end - memo->sp <= MEMO_REACH) {
		memo->reach = segment->end - memo->sp;
		memo->first = segment->first;
		memo->outer = segments - 1;
	}
	return memo->outer <= MEMO_SEGMENTS;
}

/* Take the trail's words; returns whether they are within what a memo can hold. */
INLINE int copy_words(struct memo *memo, struct trail *trail)
{
	u64 words = trail->words;

	if (!split_words(memo, trail) || (memo->outer && memo->tails))
		return 0;
	memo->words = words;
	bpf_probe_read_kernel(memo->segment, sizeof(memo->segment), trail->segment);
	BARRIER(words);
	if (words > MEMO_WORDS)
		return 0;
	bpf_probe_read_kernel(memo->stack_words.place, words * sizeof(u32), trail->stack_words.place);
	BARRIER(words);
	if (words > MEMO_WORDS)
		return 0;
	bpf_probe_read_kernel(memo->stack_words.value, words * sizeof(u64), trail->stack_words.value);
	return 1;
}

/* Remember the walk that has just ended, and is the trail's, as that of stack `id`. */
INLINE void remember_walk(struct thread *thread, u64 id)
{
	u64 index = thread->walk.memo;
	struct memo *memo;

	if (thread->walk.forgettable)
		return;
	MASK(index, MEMOS);
	memo = &thread->memo[index];
	if (!copy_words(memo, &thread->trail))
		return;
	repeat_last_word(memo);
	memo->stack = id;
	memo->uses_bp = thread->walk.needs_bp;
	memo->pc = thread->walk.start;
}

#endif
