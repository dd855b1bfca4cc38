// SPDX-License-Identifier: GPL-2.0
/* The stack of the current thread, leaf first, by the binaries' unwind tables. */
#ifndef REFLEAK_UNWIND_H
#define REFLEAK_UNWIND_H

#include "abi.h"
#include "epilogue.bpf.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "trails.bpf.h"
#include "verifier.h"
#include "walk_cache.bpf.h"
#include "x86_64.h"

#define FRAME_POINTER_REACH (1 << 20)
#define NO_CALLER -1 /* instead of a step's failure: it is the outermost frame */
#define NO_INSTANCE ~0ULL /* the list is at its end */

/* The innermost of the current task's pending return probes, 0 for none. */
INLINE u64 first_return_instance(void)
{
	u64 task = bpf_get_current_task(), utask = 0, first = 0;

	bpf_probe_read_kernel(&utask, 8, (void *)(task + TASK_UTASK));
	if (utask)
		bpf_probe_read_kernel(&first, 8, (void *)(utask + UTASK_INSTANCES));
	return first;
}

/*
 * A return probe has replaced this return address by its trampoline; the
 * kernel's list of pending return probes, innermost first, has the true one.
 */
INLINE int undo_trampoline(struct walk *walk)
{
	u64 slot = walk->sp - 8;
	u64 at = walk->instance;

	if (at == NO_INSTANCE)
		return 0;
	if (!at)
		at = first_return_instance();
#pragma unroll 1
	for (int i = 0; i < RETURN_INSTANCES; i++) {
		u64 stack = 0, next = 0;

		if (!at)
			return 0;
		bpf_probe_read_kernel(&stack, 8, (void *)(at + INSTANCE_STACK));
		bpf_probe_read_kernel(&next, 8, (void *)(at + INSTANCE_NEXT));
		if (stack == slot) {
			walk->forgettable = 1;
			bpf_probe_read_kernel(&walk->pc, 8, (void *)(at + INSTANCE_RETURN));
			walk->instance = next ? next : NO_INSTANCE;
			return 1;
		}
		at = next;
	}
	return 0;
}

/* Go to the caller by the frame pointer, as code without tables but with frame pointers allows. */
INLINE int step_by_frame_pointer(struct walk *walk, struct step *step)
{
	u64 saved[2];

	step->flags |= STEP_USED_BP | STEP_BY_FRAME_POINTER;
	if (walk->bp < walk->sp || walk->bp > walk->sp + FRAME_POINTER_REACH || walk->bp & 7)
		return STACK_NO_TABLE;
	if (bpf_probe_read_user(saved, sizeof(saved), (void *)walk->bp))
		return STACK_FAULT;
	walk->sp = walk->bp + 16;
	restore_bp(walk, step, walk->bp, saved[0]);
	walk->pc = saved[1];
	walk->is_caller = 1;
	walk->by_frame_pointer = 1;
	return 0;
}

/* Go to the caller of code that has no rule: by what it is about to do, if that is plain to see, else by the frame pointer. */
INLINE int step_without_rule(struct thread *thread, struct step *step, struct table *table)
{
	return step_by_epilogue(thread, step, table) ? 0 : step_by_frame_pointer(&thread->walk, step);
}

/* Resume at what a signal interrupted, by the ucontext that the kernel pushed. */
INLINE int step_over_signal(struct walk *walk)
{
	u64 general[SIGNAL_REGISTERS];

	if (bpf_probe_read_user(general, sizeof(general), (void *)(walk->sp + SIGNAL_REGISTERS_AT)))
		return STACK_FAULT;
	walk->forgettable = 1;
	walk->bp = general[SIGNAL_FRAME_POINTER];
	walk->sp = general[SIGNAL_STACK_POINTER];
	walk->pc = general[SIGNAL_PROGRAM_COUNTER];
	walk->is_caller = 0;
	return 0;
}

/* Read two words of the stack; returns whether that failed. */
INLINE int read_two(struct thread *thread, u64 address, u64 *two)
{
	if (!is_near(thread, address + 8))
		read_near(thread, address, NEAR_BYTES_WALKING);
	if (!is_near(thread, address) || !is_near(thread, address + 8))
		return bpf_probe_read_user(two, 16, (void *)address) != 0;
	two[0] = near_word(thread, address);
	two[1] = near_word(thread, address + 8);
	return 0;
}

INLINE int step_by_rule(struct thread *thread, struct step *step, struct rule *rule)
{
	struct walk *walk = &thread->walk;
	u64 saved[2] = {}; /* frame pointer, return address */
	int one_only;
	u64 cfa;
	u8 kind = rule->kind;

	if (kind == RULE_FRAME_POINTER || kind == RULE_REALIGNED)
		step->flags |= STEP_USED_BP;
	if (kind == RULE_STACK_POINTER) {
		cfa = walk->sp + (s64)rule->offset;
	} else if (kind == RULE_FRAME_POINTER) {
		cfa = walk->bp + (s64)rule->offset;
	} else if (kind == RULE_PLT) {
		cfa = walk->sp + 8 + (at_least(walk->pc & 15, rule->offset) << 3);
	} else if (kind == RULE_DEREFERENCE) {
		if (bpf_probe_read_user(&cfa, 8, (void *)(walk->sp + (s64)rule->offset)))
			return STACK_FAULT;
		note(step, walk->sp + (s64)rule->offset, cfa);
		cfa += (s64)rule->fp_offset;
	} else if (kind == RULE_REALIGNED) {
		u64 at = walk->bp + (s64)rule->offset, fp_at = walk->bp + (s64)rule->fp_offset;

		if (bpf_probe_read_user(&cfa, 8, (void *)at) || bpf_probe_read_user(&saved[0], 8, (void *)fp_at))
			return STACK_FAULT;
		note(step, at, cfa);
		restore_bp(walk, step, fp_at, saved[0]);
	} else {
		return STACK_UNSUPPORTED;
	}
	one_only = read_two(thread, cfa - 16, saved);
	/* What is below the return address may never have been written, and then have no page. */
	if (one_only && bpf_probe_read_user(&saved[1], 8, (void *)(cfa - 8)))
		return STACK_FAULT;
	if (kind != RULE_DEREFERENCE && rule->fp_saved) {
		if ((rule->fp_offset != -16 || one_only) &&
		    bpf_probe_read_user(&saved[0], 8, (void *)(cfa + (s64)rule->fp_offset)))
			return STACK_FAULT;
		restore_bp(walk, step, cfa + (s64)rule->fp_offset, saved[0]);
	}
	walk->sp = cfa;
	walk->pc = saved[1];
	walk->is_caller = 1;
	return 0;
}

INLINE void finish_walk(struct walk *walk, u32 status)
{
	walk->done = 1;
	walk->status = status == STACK_COMPLETE && walk->by_frame_pointer ? STACK_FRAME_POINTER : status;
}

/* Whether a walk ended where user space may be able to go on. */
INLINE int is_cut(u32 status)
{
	return status == STACK_NO_TABLE || status == STACK_FAULT || status == STACK_UNSUPPORTED;
}

INLINE void keep_frame(struct thread *thread, u64 frame)
{
	u64 depth = thread->stack.depth;

	MASK(depth, MAX_FRAMES + 1);
	thread->stack.frames[depth] = frame;
	thread->places[depth] = thread->walk.sp - thread->walk.origin;
	thread->stack.depth = depth + 1;
}

/* Note where a step begins. */
INLINE struct step *begin_step(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	u64 index = thread->stack.depth;
	struct step *step;

	MASK(index, MAX_FRAMES + 1);
	step = &thread->steps[index];
	step->pc = walk->back ? 0 : frame_pc(walk);
	step->sp = walk->sp;
	step->bp = walk->bp;
	step->bp_slot = 0;
	step->extra_slot = 0;
	step->flags = 0;
	return step;
}

/* Find what is known of the code at walk->pc, and keep it; returns whether it is in a mapping. */
INLINE int learn_frame(struct thread *thread, struct table *table, struct known_frame *known)
{
	struct walk *walk = &thread->walk;
	u64 look = walk->pc - walk->is_caller;
	u64 exact = walk->is_caller ? 0 : FRAME_EXACT;
	struct mapping *mapping = locate(walk, table, look);
	struct rule *rule;

	known->pc = 0;
	known->epoch = thread->epoch;
	known->rule.kind = RULE_NONE;
	if (look < mapping->start || look >= mapping->end) {
		known->frame = (u64)table->anonymous << FRAME_BINARY_SHIFT | exact |
			       ((walk->pc - walk->back) & (FRAME_EXACT - 1));
		return 0;
	}
	rule = rule_at(mapping, look - mapping->bias);
	if (rule)
		known->rule = *rule;
	/* The kernel "returns" to the restorer's first byte: no call stands before it. */
	if (known->rule.kind == RULE_SIGNAL)
		exact = FRAME_EXACT;
	known->frame = (u64)mapping->binary << FRAME_BINARY_SHIFT | exact |
		       ((walk->pc - walk->back - mapping->bias) & (FRAME_EXACT - 1));
	if (!walk->back)
		known->pc = frame_pc(walk);
	return 1;
}

/* Keep the frame at walk->pc and go to its caller; sets walk->done at the end. */
INLINE void step(struct thread *thread)
{
	struct walk *walk = &thread->walk;
	u64 index = walk->table;
	struct step *step = begin_step(thread);
	struct known_frame *known = known_frame_at(thread, frame_pc(walk));
	struct table *table;
	u8 kind;
	int failure;

	MASK(index, TABLES);
	table = &VALUE(TABLE_VALUES)->at[index];
	if (known->pc != frame_pc(walk) || known->epoch != thread->epoch || walk->back) {
		if (!learn_frame(thread, table, known) && walk->is_caller && undo_trampoline(walk))
			return;
	}
	keep_frame(thread, known->frame);
	walk->back = 0;
	kind = known->rule.kind;
	if (!walk->table) /* nothing is known of this process yet: all its code would look as if it had no rules */
		failure = STACK_NO_TABLE;
	else if (kind == RULE_NONE)
		failure = step_without_rule(thread, step, table);
	else if (kind == RULE_END)
		failure = NO_CALLER;
	else if (kind == RULE_SIGNAL)
		failure = step_over_signal(walk);
	else
		failure = step_by_rule(thread, step, &known->rule);
	if (failure)
		step->flags |= STEP_LAST;
	if (failure)
		finish_walk(walk, failure == NO_CALLER ? STACK_COMPLETE : failure);
	else if (!walk->pc)
		finish_walk(walk, STACK_COMPLETE);
}

INLINE void tally_walk(struct thread *thread, u32 outcome)
{
	u32 operation = thread->intent.operation & 15;

	tally(COUNT_WALKS + operation * WALK_OUTCOMES + outcome, 1);
}

/* Begin a walk of which the inner end is near; returns whether its stack is known already. */
INLINE int begin_near_walk(struct thread *thread, u64 pc, u64 sp, u64 bp)
{
	struct walk *walk = &thread->walk;
	struct cached_walk *cached;

	walk->origin = sp;
	walk->candidate = 0;
	cached = CONSTANTS->remembers ? find_cached_walk(thread, pc, sp, bp) : 0;
	if (cached && is_unchanged(thread, cached)) {
		walk->known = cached->stack;
		if (!cached->outer && is_still_there(thread, cached)) {
			tally_walk(thread, WALK_REMEMBERED);
			return 1;
		}
		walk->candidate = cached->stack;
		walk->is_other = 0;
	} else {
		walk->is_other = cached && !walk->is_parted;
	}
	walk->start = pc;
	walk->start_bp = bp;
	walk->pc = pc & ~FRAME_EXACT;
	walk->sp = sp;
	walk->bp = bp;
	walk->instance = 0;
	walk->table = thread->table;
	walk->last = 0;
	walk->back = 0;
	walk->is_caller = !(pc & FRAME_EXACT);
	walk->by_frame_pointer = 0;
	walk->status = STACK_COMPLETE;
	walk->done = 0;
	walk->known = 0;
	walk->codes = 0;
	walk->code_hash = 0;
	walk->forgettable = 0;
	walk->suffix = 0;
	walk->has_looked = 0;
	walk->may_join = thread->trail.may_join && thread->trail.epoch == thread->epoch;
	thread->stack.depth = 0;
	return 0;
}

/* Read the inner end of the stack: as much as the last walk was recognised by, and no more than is there for sure. */
INLINE void read_first(struct thread *thread, u64 address)
{
	u64 wanted = NEAR_BYTES_LEAST, of_page = PAGE_BYTES - (address & (PAGE_BYTES - 1));

	if (wanted > of_page)
		wanted = of_page;
	if (wanted < thread->near_wanted)
		wanted = thread->near_wanted;
	read_near(thread, address, wanted);
}

/*
 * Begin a walk at the caller of the probed function, or at `pc` itself where
 * it is marked FRAME_EXACT; returns whether its stack is known already.
 */
INLINE int begin_walk(struct thread *thread, u64 pc, u64 sp, u64 bp)
{
	read_first(thread, sp - 8);
	return begin_near_walk(thread, pc, sp, bp);
}

/* Read the inner end of the stack from `slot` on; returns the word there. */
INLINE u64 first_word(struct thread *thread, u64 slot)
{
	u64 word = 0;

	read_first(thread, slot);
	if (is_near(thread, slot))
		return thread->near[0];
	bpf_probe_read_user(&word, sizeof(word), (void *)slot);
	return word;
}

/* Begin a walk at the entry of a function whose return address is at `slot`; returns the same. */
INLINE int begin_walk_at(struct thread *thread, u64 slot, u64 bp)
{
	return begin_near_walk(thread, first_word(thread, slot), slot + 8, bp);
}

#endif
