// SPDX-License-Identifier: GPL-2.0
/* The programs that probes run, and the one that walks the stack. */

#include "abi.h"
#include "allocations.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "threads.bpf.h"
#include "trails.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"
#include "x86_64.h"

#define STEPS (2 * MAX_FRAMES) /* one for each frame, and one for each trampoline in between */

/* Begin with what a probe hit; returns its site, 0 where that is none of this process's. */
INLINE struct site *entered_site(struct pt_regs *ctx, struct thread *thread, u64 *index)
{
	struct site *site;

	*index = bpf_get_attach_cookie(ctx);
	if (!thread || is_of_other(thread, *index))
		return 0;
	MASK(*index, MAX_SITES);
	site = &SITES->at[*index];
	thread->intent.site = *index;
	thread->intent.operation = site->operation;
	return site;
}

/* Of functions that make and free memory. */
int on_entry(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	struct site *site;
	u8 operation;
	u64 index;

	site = entered_site(ctx, thread, &index);
	if (!site)
		return 0;
	operation = site->operation;
	if (operation <= OP_FREE && !thread->is_preloaded != !(site->flags & SITE_WRAPPER))
		return 0;
	if (operation == OP_FREE)
		free_entered(ctx, thread, site);
	else
		allocation_entered(ctx, thread, site, index);
	return 0;
}

/* Of functions that count references. */
int on_reference(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	struct site *site;
	u64 index;

	site = entered_site(ctx, thread, &index);
	if (site)
		reference_entered(ctx, thread, site);
	return 0;
}

/* Whether the cached walk of which the inner end was compared, is unchanged as a whole. */
INLINE int is_remembered(struct thread *thread)
{
	u32 index = thread->walk.cache_index;
	u64 candidate = thread->walk.candidate;
	struct cached_walk *cached;

	if (!candidate)
		return 0;
	thread->walk.candidate = 0; /* it is compared once */
	cached = map_lookup(WALKS, &index);
	if (!cached || !is_outer_unchanged(thread, cached) || !is_still_there(thread, cached))
		return 0;
	thread->walk.known = candidate;
	tally_walk(thread, WALK_REMEMBERED);
	return 1;
}

int on_return(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();

	if (!thread)
		return 0;
	resume_interrupted(thread, STACK_POINTER(ctx) - 8);
	if (thread->pending.slot != STACK_POINTER(ctx) - 8)
		return 0;
	if (!allocation_returned(ctx, thread))
		return 0;
	if (!begin_walk(thread, PROGRAM_COUNTER(ctx), STACK_POINTER(ctx), FRAME_POINTER(ctx)) && !is_remembered(thread))
		walk_then(ctx, thread, thread->intent.then);
	else if (thread->interpreters)
		go_on(ctx, thread, thread->intent.then);
	else if (thread->intent.then == PROGRAM_ALLOCATED)
		keep_allocated(thread);
	else
		tail_call(ctx, MAP(PROGRAMS), thread->intent.then);
	return 0;
}

/* The rest of the walk is the trail's, up to the outermost frame. */
INLINE void finish_joined(struct thread *thread)
{
	u64 at = thread->walk.suffix - 1;

	MASK(at, MAX_FRAMES + 1);
	thread->walk.by_frame_pointer |= thread->trail.frame[at].by_frame_pointer;
	finish_walk(&thread->walk, STACK_COMPLETE);
}

/* Go to the next frame; returns whether the walk is at its end. */
INLINE int step_turn(struct thread *thread)
{
	if (join_trail(thread)) {
		finish_joined(thread);
		return 1;
	}
	step(thread);
	if (!thread->walk.done && thread->stack.depth >= MAX_FRAMES)
		finish_walk(&thread->walk, STACK_TRUNCATED);
	return thread->walk.done;
}

int unwind(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();

	if (!thread)
		return 0;
	if (is_remembered(thread)) {
		tail_call(ctx, MAP(PROGRAMS), program_after_walk(thread));
		goto refused;
	}
	if (thread->walk.is_other)
		REPEAT(1, part_walks, &thread);
	REPEAT(STEPS, step, &thread);
	if (!thread->walk.done)
		finish_walk(&thread->walk, STACK_TRUNCATED);
	tally(COUNT_FRAMES, thread->stack.depth);
	tally(COUNT_FRAMES_JOINED, thread->walk.suffix);
	tally_walk(thread, thread->walk.suffix ? WALK_JOINED : WALK_MADE);
	keep_trail(thread);
	if (thread->walk.forgettable)
		tally(COUNT_FORGOTTEN, 1);
	if (thread->interpreters) /* where its frames belong is told by all of them */
		complete_stack(thread);
	tail_call(ctx, MAP(PROGRAMS), is_cut(thread->walk.status) ? PROGRAM_COPY : program_after_walk(thread));
refused:
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}
