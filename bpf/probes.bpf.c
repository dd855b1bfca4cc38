// SPDX-License-Identifier: GPL-2.0
/* The two programs that probes run, and the one that walks the stack. */

#include "abi.h"
#include "allocations.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"

#define STEPS (2 * MAX_FRAMES)	/* one for each frame, and one for each trampoline in between */

int on_entry(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	struct site *site;
	u8 operation;

	if (!thread)
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->site[index];
	operation = site->operation;
	thread->intent.site = index;
	thread->intent.operation = operation;
	if (operation == OP_FREE)
		free_entered(ctx, thread, site);
	else if (operation >= OP_ALLOC)
		allocation_entered(ctx, thread, site, index);
	else
		reference_entered(ctx, thread, site);
	return 0;
}

int on_return(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();

	if (!thread || thread->pending.slot != ctx->sp - 8)
		return 0;
	if (!allocation_returned(ctx, thread))
		return 0;
	if (!begin_walk(thread, ctx->ip, ctx->sp, ctx->bp))
		walk_then(ctx, thread, thread->intent.then);
	else if (thread->guest)
		go_on(ctx, thread, thread->intent.then);
	else if (thread->intent.then == PROGRAM_ALLOCATED)
		keep_allocated(thread);
	else
		tail_call(ctx, MAP(PROGRAMS), PROGRAM_MAPPED);
	return 0;
}

/* Go to the next frame; returns whether the walk is at its end. */
INLINE int step_turn(struct thread *thread)
{
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
	REPEAT(STEPS, step, &thread);
	if (!thread->walk.done)
		finish_walk(&thread->walk, STACK_TRUNCATED);
	tail_call(ctx, MAP(PROGRAMS), is_cut(thread->walk.status) ? PROGRAM_COPY : program_after_walk(thread));
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}
