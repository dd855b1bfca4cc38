// SPDX-License-Identifier: GPL-2.0
/* Walks that are remembered: see struct cached_walk. */
#ifndef REFLEAK_WALK_CACHE_H
#define REFLEAK_WALK_CACHE_H

#include "abi.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

#define PAGE_BYTES 4096

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

/* Read so many bytes of the stack; returns whether that failed. The bound stands next to the read: 6.1 forgets it. */
INLINE int read_part(struct thread *thread, u64 address, u64 bytes)
{
	BARRIER(bytes);
	if (bytes > NEAR_BYTES)
		return 1;
	return bpf_probe_read_user(thread->near, bytes, (void *)address) != 0;
}

/*
 * Read so much of the stack from an address on: to read a kilobyte costs hardly
 * more than to read a word. Where a stack ends is found out once.
 */
INLINE void read_near(struct thread *thread, u64 address, u64 wanted)
{
	u64 bytes = thread->stack_end - address;

	thread->near_start = address;
	thread->near_bytes = 0;
	if (bytes > wanted)
		bytes = wanted;
	if (read_part(thread, address, bytes)) {
		bytes = PAGE_BYTES - (address & (PAGE_BYTES - 1));
		if (bytes >= wanted || read_part(thread, address, bytes))
			return;
		thread->stack_end = address + bytes;
	}
	thread->near_bytes = bytes;
}

/* Have as much near as a cached walk is recognised by; the next walk is taken to be as deep. */
INLINE int has_near(struct thread *thread, struct cached_walk *cached)
{
	u64 reach = cached->reach;

	thread->near_wanted = reach;
	if (reach > thread->near_bytes)
		read_near(thread, thread->near_start, reach);
	return reach <= thread->near_bytes;
}

/* Whether a word of the stack is near. */
INLINE int is_near(struct thread *thread, u64 address)
{
	u64 distance = address - thread->near_start;

	return !(distance & 7) && distance < thread->near_bytes && distance + 8 <= thread->near_bytes;
}

INLINE u64 near_word(struct thread *thread, u64 address)
{
	u64 word = (address - thread->near_start) >> 3;

	MASK(word, NEAR_BYTES / 8);
	return thread->near[word];
}

/* Where a frame is kept once it was walked: in one of two places, that in which it is or the one that is its turn. */
INLINE struct known_frame *known_frame_at(struct thread *thread, u64 pc)
{
	u64 index = ((pc & ~FRAME_EXACT) * 0x9e3779b97f4a7c15ULL) >> 55;
	u64 first, second;

	MASK(index, KNOWN_FRAMES);
	first = thread->known[index].pc ^ pc;
	index ^= 1;
	second = thread->known[index].pc ^ pc;
	index ^= is_any(second) & ((is_any(first) ^ 1) | thread->walk.turn);
	MASK(index, KNOWN_FRAMES);
	return &thread->known[index];
}

/* Go to the caller of a frame that is known, without a proof that it is so; returns whether it is known. */
INLINE int go_to_likely_caller(struct thread *thread, struct walk *at)
{
	struct known_frame *known = known_frame_at(thread, at->pc);
	u64 by_bp = known->rule.kind - RULE_STACK_POINTER; /* 0, or 1 for RULE_FRAME_POINTER */
	u64 other = (known->pc ^ at->pc) | (known->epoch ^ thread->epoch) | by_bp >> 1;
	u64 cfa = (at->sp ^ ((at->sp ^ at->bp) & -by_bp)) + (s64)known->rule.offset;
	u64 distance = cfa - 8 - thread->near_start;
	u64 saved = cfa + (s64)known->rule.fp_offset;

	if (other || distance >= thread->near_bytes)
		return 0;
	at->bp ^= (at->bp ^ near_word(thread, saved)) & -(u64)known->rule.fp_saved;
	at->sp = cfa;
	at->pc = near_word(thread, cfa - 8);
	at->hash_of_callers = mixed(at->hash_of_callers, at->pc);
	return 1;
}

/* Begin the tag by which a walk is looked for: its thread, and where it begins. */
INLINE void begin_tag(struct thread *thread, u64 pc, u64 sp, u64 bp)
{
	struct walk *at = &thread->walk;

	at->pc = pc;
	at->sp = sp;
	at->bp = bp;
	at->hash_of_callers = mixed(mixed(((u64)thread->pid << 32) + thread->tid, pc), sp);
}

/*
 * Have the tag be of so many more callers, which are likely by what is known of
 * their frames. If they are wrong the walk is not found, or the words differ.
 */
INLINE void add_callers(struct thread *thread, int count)
{
	struct walk *at = &thread->walk;

#pragma unroll 1
	for (int i = 0; i < count; i++)
		if (!go_to_likely_caller(thread, at))
			break;
	at->tag = id_of_hash(at->hash_of_callers + count);
}

/* The walk depends on the code at an address, of which `code` was read. */
INLINE void note_code(struct thread *thread, u64 address, u64 code)
{
	u64 last = thread->walk.codes;

	if (last >= CACHED_CODES) {
		thread->walk.forgettable = 1;
		return;
	}
	thread->code[last] = address;
	thread->walk.code_hash = mixed(thread->walk.code_hash, code);
	thread->walk.codes = last + 1;
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
	struct thread *thread;
	struct words *known;
	u64 first;
	u64 words; /* the one after the last */
	u64 start;
	u64 same; /* how many are as they were */
};

/* Compare some strides of words with the window; returns whether those were the last ones to compare. */
INLINE int compare_stride_turn(struct compared *part, u64 turn)
{
	u64 words = part->words, start = part->start, word = part->first + turn * CACHED_STRIDES * CACHED_STRIDE;

#pragma unroll 1
	for (int i = 0; i < CACHED_STRIDES; i++, word += CACHED_STRIDE) {
		u64 at = word, difference = 0;

		if (word >= words)
			return 1;
		MASK(at, CACHED_WORDS);
#pragma unroll
		for (int j = 0; j < CACHED_STRIDE; j++) {
			u64 place = part->known->place[at + j] - start;
			u64 counts = -(at_least(at + j, words) ^ 1);

			MASK(place, CACHED_REACH / 8);
			difference |= (part->thread->window[place] ^ part->known->value[at + j]) & counts;
		}
		if (difference) {
			part->same = word;
			return 1;
		}
	}
	return 0;
}

/* Compare words with the window; returns how many are as they were, of those before the first stride that is not. */
INLINE u64 compare_words(struct compared *part)
{
	part->same = part->words;
	REPEAT(CACHED_WORDS / (CACHED_STRIDES * CACHED_STRIDE), compare_stride, part);
	return part->same;
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
	struct compared part = { .thread = thread, .known = &cached->stack_words };
	struct segment *segment;

	MASK(index, CACHED_SEGMENTS);
	MASK(next, CACHED_SEGMENTS);
	segment = &cached->segment[index];
	part.first = segment->first;
	part.words = index + 1 < cached->outer ? cached->segment[next].first : cached->inner;
	part.start = segment->start >> 3;
	size = segment->end - segment->start;
	if (size > CACHED_REACH || bpf_probe_read_user(thread->window, size, (void *)segment->start) ||
	    compare_words(&part) != part.words) {
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

/* Returns what differs in the stride of a cached walk's words from `word` on: in the part of the stack that is near. */
INLINE u64 differing_near(struct thread *thread, struct cached_walk *cached, u64 word, u64 base)
{
	u64 difference = 0;

	MASK(word, CACHED_WORDS);
#pragma unroll
	for (int j = 0; j < CACHED_STRIDE; j++) {
		u64 place = cached->stack_words.place[word + j] - base;

		MASK(place, NEAR_BYTES / 8);
		difference |= thread->near[place] ^ cached->stack_words.value[word + j];
	}
	return difference;
}

/* Go on with some strides behind those that are compared in line; returns whether that is all. */
INLINE int compare_near_turn(struct comparing *comparing, u64 turn)
{
	struct cached_walk *cached = comparing->cached;
	u64 word = cached->inner + NEAR_WORDS_IN_LINE + turn * CACHED_STRIDES * CACHED_STRIDE;
	u64 base = (cached->sp - 8) >> 3, words = cached->words, difference = 0;

#pragma unroll 1
	for (int i = 0; i < CACHED_STRIDES && word < words; i++, word += CACHED_STRIDE)
		difference |= differing_near(comparing->thread, cached, word, base);
	if (difference)
		comparing->thread->walk.unchanged = 0;
	return difference || word >= words;
}

/*
 * Whether the part of the stack that is near is as it was in the cached walk. Not by compare_words(): each allocation
 * comes here, and a cached walk's last stride is filled, so that no word need be looked at for whether it counts. In
 * line are as many as most have: the verifier follows each turn, in each program.
 */
INLINE int is_unchanged(struct thread *thread, struct cached_walk *cached)
{
	u64 first = cached->inner, words = cached->words, base = (cached->sp - 8) >> 3, difference = 0;
	struct comparing comparing = { .thread = thread, .cached = cached };

	if (!has_near(thread, cached))
		return 0;
#pragma unroll 1
	for (u64 i = 0; i < NEAR_WORDS_IN_LINE; i += CACHED_STRIDE) {
		if (first + i >= words)
			break;
		difference |= differing_near(thread, cached, first + i, base);
	}
	if (difference)
		return 0;
	if (words > first + NEAR_WORDS_IN_LINE) {
		thread->walk.unchanged = 1;
		REPEAT((CACHED_WORDS - NEAR_WORDS_IN_LINE) / (CACHED_STRIDES * CACHED_STRIDE), compare_near,
		       &comparing);
		if (!thread->walk.unchanged)
			return 0;
	}
	return !cached->codes || has_same_code(thread, cached);
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

INLINE int is_cached_walk_of(struct thread *thread, struct cached_walk *cached, u64 pc, u64 sp, u64 bp)
{
	return cached->pc == pc && cached->sp == sp && cached->epoch == thread->epoch && cached->tid == thread->tid &&
	       cached->pid == thread->pid && (cached->bp == bp || !cached->uses_bp) &&
	       (cached->has_places || !thread->interpreters);
}

/* The walk's version; odd while it is written. */
INLINE u64 version_of(struct cached_walk *cached)
{
	u64 version = *(volatile u64 *)&cached->version;

	KEEP_ORDER();
	return version;
}

/* Find what is kept by the walk's tag; NULL: nothing, and the index is where it has room. */
INLINE struct cached_walk *find_tag(struct walk *walk)
{
	u64 tag = walk->tag;

	walk->cache_index = (tag & (CACHED_WALKS - 2)) | (walk->turn & 1);
#pragma unroll
	for (int way = 0; way < 2; way++) {
		u32 place = (tag & (CACHED_WALKS - 2)) | way;
		struct cached_walk *cached = map_lookup(WALKS, &place);

		if (!cached)
			return 0;
		if (cached->tag == tag) {
			walk->cache_index = place;
			walk->version = version_of(cached);
			return cached;
		}
	}
	walk->turn++;
	return 0;
}

/* Find the cached walk that may be the one that begins, else NULL, and the index is where that is to be kept. */
INLINE struct cached_walk *find_cached_walk(struct thread *thread, u64 pc, u64 sp, u64 bp)
{
	struct walk *walk = &thread->walk;
	struct cached_walk *cached;

	begin_tag(thread, pc, sp, bp);
	add_callers(thread, FIRST_CALLERS);
	cached = find_tag(walk);
	walk->is_parted = cached && cached->is_parting;
	if (walk->is_parted) {
		add_callers(thread, FURTHER_CALLERS);
		cached = find_tag(walk);
	}
	return cached && !(walk->version & 1) && is_cached_walk_of(thread, cached, pc, sp, bp) ? cached : 0;
}

/*
 * The cached walk that was found is another one: have further callers tell them
 * apart from now on. Before the walk begins: its first frame is where it was,
 * and what is near too. It is the turn of a loop to have a stack of its own.
 */
INLINE int part_walks_turn(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	u64 pc = walk->pc, sp = walk->sp, bp = walk->bp;

	walk->parting = walk->tag;
	walk->parting_index = walk->cache_index;
	begin_tag(thread, walk->start, walk->origin, walk->start_bp);
	add_callers(thread, FIRST_CALLERS);
	add_callers(thread, FURTHER_CALLERS);
	find_tag(walk);
	walk->pc = pc;
	walk->sp = sp;
	walk->bp = bp;
	return 1;
}

/* Whether the cached walk that was found is still the one that was compared. Interpreters get its places. */
INLINE int is_still_there(struct thread *thread, struct cached_walk *cached)
{
	u32 depth = cached->depth;

	if (thread->interpreters)
		bpf_probe_read_kernel(thread->places, sizeof(thread->places), cached->places);
	KEEP_ORDER();
	if (version_of(cached) != thread->walk.version)
		return 0;
	if (thread->interpreters)
		thread->stack.depth = depth;
	return 1;
}

/* What one read from the walk's beginning reaches of the trail's words; the rest is read by segments. */
INLINE int split_words(struct walk *walk, struct cached_walk *cached, struct trail *trail)
{
	u64 segments = trail->segments, last = segments - 1, near = walk->origin - 8;
	struct segment *segment;

	MASK(last, TRAIL_SEGMENTS);
	segment = &trail->segment[last];
	cached->inner = trail->words;
	cached->reach = 0;
	cached->outer = segments;
	if (segments && segment->end - near <= NEAR_BYTES) {
		cached->inner = segment->first;
		cached->reach = segment->end - near;
		cached->outer = segments - 1;
	}
	return cached->outer <= CACHED_SEGMENTS;
}

/* Take the trail's words; returns whether they are within what a cached walk can hold. */
INLINE int copy_words(struct walk *walk, struct cached_walk *cached, struct trail *trail)
{
	u64 words = trail->words;

	if (!split_words(walk, cached, trail))
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

/* Write the walk that has just ended, and is the trail's, into a place that nobody else writes. */
INLINE void write_walk(struct thread *thread, struct cached_walk *cached, u64 id)
{
	struct walk *walk = &thread->walk;

	cached->tag = 0;
	cached->is_parting = 0;
	if (!copy_words(walk, cached, &thread->trail))
		return;
	repeat_last_word(cached);
	cached->pc = walk->start;
	cached->sp = walk->origin;
	cached->bp = walk->start_bp;
	cached->epoch = thread->epoch;
	cached->stack = id;
	cached->pid = thread->pid;
	cached->tid = thread->tid;
	cached->uses_bp = walk->needs_bp;
	cached->codes = walk->codes;
	cached->code_hash = walk->code_hash;
	if (walk->codes)
		bpf_probe_read_kernel(cached->code, sizeof(cached->code), thread->code);
	cached->has_places = thread->interpreters != 0;
	cached->depth = thread->stack.depth;
	if (thread->interpreters)
		bpf_probe_read_kernel(cached->places, sizeof(cached->places), thread->places);
	cached->tag = walk->tag;
}

/* Begin to write to a place; returns NULL where another thread does. */
INLINE struct cached_walk *take_cached_walk(u32 index)
{
	struct cached_walk *cached = map_lookup(WALKS, &index);

	if (!cached || exchange(&cached->is_taken, 1))
		return 0;
	cached->version++;
	KEEP_ORDER();
	return cached;
}

INLINE void release_cached_walk(struct cached_walk *cached)
{
	KEEP_ORDER();
	cached->version++;
	KEEP_ORDER();
	cached->is_taken = 0;
}

/* Remember the walk that has just ended as that of stack `id`, unless another thread writes to the same place. */
INLINE void remember_walk(struct thread *thread, u64 id)
{
	struct walk *walk = &thread->walk;
	struct cached_walk *cached;

	if (walk->forgettable || !CONSTANTS->remembers)
		return;
	cached = walk->is_other ? take_cached_walk(walk->parting_index) : 0;
	if (cached) {
		cached->tag = walk->parting;
		cached->is_parting = 1;
		release_cached_walk(cached);
	}
	cached = take_cached_walk(walk->cache_index);
	if (cached) {
		write_walk(thread, cached, id);
		release_cached_walk(cached);
	}
}

#endif
