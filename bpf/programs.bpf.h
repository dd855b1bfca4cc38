// SPDX-License-Identifier: GPL-2.0
/* The programs that are reached by tail calls, and their way back to the walk. */
#ifndef REFLEAK_PROGRAMS_H
#define REFLEAK_PROGRAMS_H

enum program {
	PROGRAM_UNWIND,
	PROGRAM_ALLOCATED,
	PROGRAM_MAPPED,
	PROGRAM_REFERENCE,
	PROGRAM_DELETE,
	PROGRAM_FREED,
	PROGRAM_GUEST,
	PROGRAM_GUEST_KEEP,
	PROGRAM_COUNT,
};

/* Walk the stack, then run `then`; returns only if the kernel refuses. */
INLINE void walk_then(struct pt_regs *ctx, struct thread *thread, u32 then)
{
	thread->intent.then = then;
	tail_call(ctx, MAP(PROGRAMS), PROGRAM_UNWIND);
	lose(LOSS_UNWIND_REFUSED);
}

/* Run `then` with the stack that a memo told; returns only if the kernel refuses. */
INLINE void go_on(struct pt_regs *ctx, struct thread *thread, u32 then)
{
	thread->intent.then = then;
	tail_call(ctx, MAP(PROGRAMS), thread->guest ? PROGRAM_GUEST : then);
	lose(LOSS_UNWIND_REFUSED);
}

/* Walk from the caller of the function that was entered. */
INLINE void walk_from_entry(struct pt_regs *ctx, struct thread *thread, u32 return_distance, u32 then)
{
	u64 slot = ctx->sp + return_distance;
	u64 pc = 0;

	bpf_probe_read_user(&pc, sizeof(pc), (void *)slot);
	if (begin_walk(thread, pc, slot + 8, ctx->bp))
		go_on(ctx, thread, then);
	else
		walk_then(ctx, thread, then);
}

#endif
