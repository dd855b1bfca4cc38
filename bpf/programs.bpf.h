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
	PROGRAM_COUNT,
};

/* Walk the stack, then run `then`; returns only if the kernel refuses. */
INLINE void walk_then(struct pt_regs *ctx, struct thread *thread, u32 then)
{
	thread->intent.then = then;
	tail_call(ctx, MAP(PROGRAMS), PROGRAM_UNWIND);
	lose(LOSS_UNWIND_REFUSED);
}

/* Walk from the caller of the function that was entered; from the probed instruction where it was inlined. */
INLINE void walk_from_entry(struct pt_regs *ctx, struct thread *thread, struct site *site, u32 then)
{
	u64 sp = ctx->sp, pc = ctx->ip | FRAME_EXACT;

	if (!(site->flags & SITE_INLINED)) {
		sp += site->return_distance;
		bpf_probe_read_user(&pc, sizeof(pc), (void *)sp);
		sp += 8;
	}
	if (begin_walk(thread, pc, sp, ctx->bp)) {
		tail_call(ctx, MAP(PROGRAMS), then);
		lose(LOSS_UNWIND_REFUSED);
	} else {
		walk_then(ctx, thread, then);
	}
}

#endif
