// SPDX-License-Identifier: GPL-2.0
/* Walks that a thread remembers: see struct memo. */
#ifndef REFLEAK_WALK_CACHE_H
#define REFLEAK_WALK_CACHE_H

#include "abi.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

/* Note a word that the walk depended on, so that the walk can be recognised. */
INLINE void note(struct thread *thread, u64 address, u64 value)
{
	u64 index = thread->walk.memo;
	u64 distance = address - thread->walk.origin;
	struct memo *memo;
	u64 word;

	MASK(index, MEMOS);
	memo = &thread->memo[index];
	word = memo->words;
	if (word >= MEMO_WORDS || distance > MEMO_REACH - 8 || distance & 7) {
		thread->walk.forgettable = 1;
		return;
	}
	MASK(word, MEMO_WORDS);
	memo->place[word] = distance >> 3;
	memo->value[word] = value;
	memo->words = word + 1;
	if (distance + 8 > memo->reach)
		memo->reach = distance + 8;
}

/* rbp was read from `slot`: a word to compare only if the walk comes to depend on it. */
INLINE void restore_bp(struct walk *walk, u64 slot, u64 value)
{
	walk->bp = value;
	walk->bp_slot = slot;
	walk->restored_bp = 1;
}

/* The walk depends on rbp from here on. */
INLINE void use_bp(struct thread *thread)
{
	struct walk *walk = &thread->walk;

	if (!walk->restored_bp)
		walk->uses_first_bp = 1;
	if (walk->bp_slot)
		note(thread, walk->bp_slot, walk->bp);
	walk->bp_slot = 0;
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
		bpf_probe_read_user(&thread->walk.code, 8, (void *)memo->tail[tail]);	/* zeros where there is nothing */
		hash = mixed(hash, thread->walk.code);
	}
	return hash == memo->tail_hash;
}

/* Whether the stack in the window is the one of the memo: all that its walk read is as it was. */
INLINE int is_unchanged(struct thread *thread, struct memo *memo)
{
	u64 words = memo->words, difference = 0;

#pragma unroll 1
	for (u64 i = 0; i < MEMO_WORDS; i += MEMO_STRIDE) {
		u64 word = i;

		if (i >= words)
			break;
		asm volatile("%0 &= %1" : "+r"(word) : "i"(MEMO_WORDS - MEMO_STRIDE));
#pragma unroll
		for (int j = 0; j < MEMO_STRIDE; j++) {
			u64 place = memo->place[word + j];

			MASK(place, MEMO_REACH / 8);
			difference |= thread->window[1 + place] ^ memo->value[word + j];
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
	for (int j = 1; j < MEMO_STRIDE; j++) {	/* without a look whether there is room: Linux 6.12 forgets the mask there */
		memo->place[last + j] = memo->place[last];
		memo->value[last + j] = memo->value[last];
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

/* Remember the walk that has just ended as that of stack `id`. */
INLINE void remember_walk(struct thread *thread, u64 id)
{
	u64 index = thread->walk.memo;

	if (thread->walk.forgettable || thread->walk.status == STACK_FAULT)
		return;
	MASK(index, MEMOS);
	repeat_last_word(&thread->memo[index]);
	thread->memo[index].stack = id;
	thread->memo[index].uses_bp = thread->walk.uses_first_bp;
	thread->memo[index].pc = thread->walk.start;
}

#endif
