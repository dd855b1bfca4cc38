// SPDX-License-Identifier: GPL-2.0
/* The two programs that probes run, and the one that walks the stack. */

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

int unwind(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();

	if (!thread)
		return 0;
#pragma unroll 1
	for (int i = 0; i < FRAMES_PER_PROGRAM; i++) {
		step(thread);
		if (thread->walk.done)
			break;
		if (thread->stack.depth >= MAX_FRAMES) {
			finish_walk(&thread->walk, STACK_TRUNCATED);
			break;
		}
	}
	if (thread->walk.done)
		tail_call(ctx, MAP(PROGRAMS), is_cut(thread->walk.status) ? PROGRAM_COPY : program_after_walk(thread));
	else
		tail_call(ctx, MAP(PROGRAMS), PROGRAM_UNWIND);
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}
