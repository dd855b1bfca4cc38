// SPDX-License-Identifier: GPL-2.0
/* Walks that end where the thread's last one went on: see struct trail. */
#ifndef REFLEAK_TRAILS_H
#define REFLEAK_TRAILS_H

#include "abi.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.bpf.h"
#include "walk_cache.h"

/* The frame that a walk is at, as it is told from others. */
INLINE u64 frame_pc(struct walk *walk)
{
	return walk->pc | (walk->is_caller ? 0 : FRAME_EXACT);
}

INLINE u64 place_on_trail(u64 sp)
{
	u64 place = sp >> 4;

	MASK(place, TRAIL_PLACES);
	return place;
}

/* Compare a segment's words with the stack; returns whether that was the last one to look at. */
INLINE int compare_segment_turn(struct thread *thread, u64 index)
{
	struct walk *walk = &thread->walk;
	struct trail *trail = &thread->trail;
	u64 next = index + 1, words = walk->compared, first, start, size;
	struct compared part = { .thread = thread, .known = &trail->stack_words };
	struct segment *segment;

	MASK(index, TRAIL_SEGMENTS);
	MASK(next, TRAIL_SEGMENTS);
	segment = &trail->segment[index];
	first = segment->first;
	if (index + 1 < trail->segments && trail->segment[next].first < words)
		words = trail->segment[next].first;
	start = segment->start > walk->sp ? segment->start : walk->sp;
	size = segment->end - start;
	if (first >= words)
		return 1;
	if (size > CACHED_REACH || bpf_probe_read_user(thread->window, size, (void *)start))
		return 1;
	part.first = first;
	part.words = words;
	part.start = start >> 3;
	walk->unchanged = compare_words(&part);
	return walk->unchanged != words || words == walk->compared;
}

/* Count how many of the trail's words up to a frame's are as they were, the outermost first. */
INLINE void compare_trail(struct thread *thread, struct trail_frame *frame)
{
	struct walk *walk = &thread->walk;

	walk->has_looked = 1;
	walk->unchanged = 0;
	walk->compared = frame->words;
	REPEAT(frame->segments, compare_segment, &thread);
}

/* End the walk here if the trail has this frame, and all that it went by from here on is as it was. */
INLINE int join_trail(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	struct trail *trail = &thread->trail;
	struct trail_frame *frame;
	u64 at;

	if (!CONSTANTS->remembers || !walk->may_join)
		return 0;
	at = trail->at[place_on_trail(walk->sp)];
	MASK(at, MAX_FRAMES + 1);
	frame = &trail->frame[at];
	if (at >= trail->depth || frame->sp != walk->sp || frame->pc != frame_pc(walk) || walk->back ||
	    (frame->uses_bp && frame->bp != walk->bp))
		return 0;
	if (thread->stack.depth + at + 1 > MAX_FRAMES)
		return 0;
	if (!walk->has_looked)
		compare_trail(thread, frame);
	if (frame->words > walk->unchanged)
		return 0;
	walk->suffix = at + 1;
	return 1;
}

/* Have a word lie in a segment; returns whether it can. */
INLINE int extend_segment(struct trail *trail, u64 address)
{
	u64 count = trail->segments, last = count - 1;
	struct segment *segment;

	MASK(last, TRAIL_SEGMENTS);
	segment = &trail->segment[last];
	if (count && address + 8 > segment->end && address + 8 - segment->start <= CACHED_REACH) {
		segment->end = address + 8;
		return 1;
	}
	if (count && address + SEGMENT_GAP >= segment->start && segment->end - address <= CACHED_REACH) {
		if (address < segment->start)
			segment->start = address;
		return 1;
	}
	if (count >= TRAIL_SEGMENTS)
		return 0;
	MASK(count, TRAIL_SEGMENTS);
	segment = &trail->segment[count];
	segment->start = address;
	segment->end = address + 8;
	segment->first = trail->words;
	trail->segments = count + 1;
	return 1;
}

/* Keep a word that the walk depended on; returns whether there was room. */
INLINE int push_word(struct trail *trail, u64 lowest, u64 address, u64 value)
{
	u64 word = trail->words;

	if (word >= CACHED_WORDS || address < lowest || address & 7 || !extend_segment(trail, address))
		return 0;
	MASK(word, CACHED_WORDS);
	trail->stack_words.place[word] = address >> 3;
	trail->stack_words.value[word] = value;
	trail->words = word + 1;
	return 1;
}

/* Keep the words that a step depended on; returns whether there was room. A saved frame pointer counts where it was used. */
INLINE int push_words(struct walk *walk, struct trail *trail, struct step *step, struct step *next)
{
	if (step->bp_slot) {
		if (walk->needs_bp && !push_word(trail, step->sp, step->bp_slot, next->bp))
			return 0;
		walk->needs_bp = 0;
	}
	if (step->flags & STEP_USED_BP)
		walk->needs_bp = 1;
	if (step->extra_slot && !push_word(trail, step->sp, step->extra_slot, step->extra))
		return 0;
	return step->flags & STEP_LAST || push_word(trail, step->sp, next->sp - 8, next->pc);
}

INLINE void push_frame(struct walk *walk, struct trail *trail, struct step *step, u64 key)
{
	u64 depth = trail->depth;
	struct trail_frame *frame;

	MASK(depth, MAX_FRAMES + 1);
	frame = &trail->frame[depth];
	frame->pc = step->pc;
	frame->sp = step->sp;
	frame->bp = step->bp;
	frame->frame = key;
	frame->hash = walk->hash;
	frame->words = trail->words;
	frame->segments = trail->segments;
	frame->uses_bp = walk->needs_bp;
	frame->by_frame_pointer = walk->outer_by_frame_pointer;
	trail->at[place_on_trail(step->sp)] = depth;
	trail->depth = depth + 1;
}

/* Put the next step further in on the trail, and mix its frame in. */
INLINE int push_step_turn(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	struct trail *trail = &thread->trail;
	u64 next = walk->to_push, index, outer = trail->depth - 1, key;
	struct step *step;

	if (!next)
		return 1;
	index = next - 1;
	walk->to_push = index;
	MASK(index, MAX_FRAMES + 1);
	MASK(next, MAX_FRAMES + 1);
	MASK(outer, MAX_FRAMES + 1);
	key = thread->stack.frames[index];
	walk->hash = mixed(walk->hash, key);
	if (walk->forgettable)
		return 0;
	step = &thread->steps[index];
	if (step->flags & STEP_BY_FRAME_POINTER)
		walk->outer_by_frame_pointer = 1;
	if ((trail->depth && step->sp >= trail->frame[outer].sp) ||
	    !push_words(walk, trail, step, &thread->steps[next])) {
		walk->forgettable = 1;
		return 0;
	}
	push_frame(walk, trail, step, key);
	return 0;
}

/* Take from the last segment what lies further in than a frame. */
INLINE void raise_segment(struct trail *trail, u64 sp)
{
	u64 last = trail->segments - 1;

	MASK(last, TRAIL_SEGMENTS);
	if (trail->segment[last].start < sp)
		trail->segment[last].start = sp;
}

/* Begin to push: at the frame that was joined, or a trail of its own. */
INLINE void begin_trail(struct walk *walk, struct trail *trail)
{
	u64 suffix = walk->suffix - 1;
	struct trail_frame *frame;

	walk->hash = 0xcbf29ce484222325ULL;
	walk->needs_bp = 0;
	walk->outer_by_frame_pointer = 0;
	if (walk->suffix) {
		MASK(suffix, MAX_FRAMES + 1);
		frame = &trail->frame[suffix];
		walk->hash = frame->hash;
		walk->needs_bp = frame->uses_bp;
		walk->outer_by_frame_pointer = frame->by_frame_pointer;
		trail->depth = walk->suffix;
		trail->words = frame->words;
		trail->segments = frame->segments;
		raise_segment(trail, frame->sp);
	} else if (!walk->forgettable) {
		trail->depth = 0;
		trail->words = 0;
		trail->segments = 0;
	}
}

/* Give the walk that has ended its hash, and have the trail be of it. */
INLINE void keep_trail(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	struct trail *trail = &thread->trail;
	u64 depth = thread->stack.depth;
	int is_kept;

	MASK(depth, MAX_FRAMES + 1);
	if (walk->status == STACK_FAULT)
		walk->forgettable = 1;
	is_kept = !walk->forgettable;
	begin_trail(walk, trail);
	thread->steps[depth].pc = walk->pc;
	thread->steps[depth].sp = walk->sp;
	thread->steps[depth].bp = walk->bp;
	walk->to_push = depth;
	REPEAT(depth, push_step, &thread);
	if (!is_kept)
		return;
	trail->epoch = thread->epoch;
	trail->may_join = !walk->codes && (walk->status == STACK_COMPLETE || walk->status == STACK_FRAME_POINTER);
}

INLINE int outer_frame_turn(struct thread *thread)
{
	u64 depth = thread->stack.depth, at = thread->walk.suffix - 1;

	MASK(depth, MAX_FRAMES + 1);
	MASK(at, MAX_FRAMES + 1);
	thread->stack.frames[depth] = thread->trail.frame[at].frame;
	thread->places[depth] = thread->trail.frame[at].sp - thread->walk.origin;
	thread->stack.depth = depth + 1;
	thread->walk.suffix = at;
	return 0;
}

/* Take the frames of the outer part that the walk has joined. */
INLINE void complete_stack(struct thread *thread)
{
	if (thread->walk.suffix)
		REPEAT(thread->walk.suffix, outer_frame, &thread);
}

#endif
