// SPDX-License-Identifier: GPL-2.0
/* Walks that a thread remembers: see struct memo. */
#ifndef REFLEAK_MEMOS_H
#define REFLEAK_MEMOS_H

/* An index that the verifier sees to be below a power of two. */
#define MASK(x, size) asm volatile("%0 &= %1" : "+r"(x) : "i"((size) - 1))

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

/* Read the stack as far as the memo's walk read it, and the word below; returns whether that could be read. */
INLINE int read_window(struct thread *thread, struct memo *memo)
{
	u64 size = memo->reach;

	if (size > MEMO_REACH)
		return 0;
	return !bpf_probe_read_user(thread->window, size + 8, (void *)(memo->sp - 8));
}

#define MEMO_STRIDE 4	/* words compared between two looks at how many there are: the rest repeat the last one */

/* Whether the stack in the window is the one of the memo: all words that its walk read are as they were. */
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
	return !difference;
}

/* Fill the memo's last stride. */
INLINE void repeat_last_word(struct memo *memo)
{
	u64 last = memo->words - 1;

	MASK(last, MEMO_WORDS);
#pragma unroll
	for (int j = 1; j < MEMO_STRIDE; j++) {
		u64 word = last + j;

		if (word >= MEMO_WORDS)
			break;
		MASK(word, MEMO_WORDS);
		memo->place[word] = memo->place[last];
		memo->value[word] = memo->value[last];
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
