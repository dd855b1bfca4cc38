// SPDX-License-Identifier: GPL-2.0
/* The programs that are reached by tail calls, and their way back to the walk. */
#ifndef REFLEAK_PROGRAMS_H
#define REFLEAK_PROGRAMS_H

#include "abi.h"
#include "maps.bpf.h"
#include "x86_64.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"

enum program {
	PROGRAM_UNWIND,
	PROGRAM_ALLOCATED,
	PROGRAM_MAPPED,
	PROGRAM_REFERENCE,
	PROGRAM_DELETE,
	PROGRAM_HOLDER_FREED,
	PROGRAM_FREED,
	PROGRAM_COPY,
	PROGRAM_UNKNOWN_FREE,
	PROGRAM_INTERPRETERS,
	PROGRAM_INTERPRETERS_LUAJIT,
	PROGRAM_INTERPRETERS_KEEP,
	PROGRAM_COUNT,
};

/* Walk the stack, then run `then`; returns only if the kernel refuses. */
INLINE void walk_then(struct pt_regs *ctx, struct thread *thread, u32 then)
{
	thread->intent.then = then;
	tail_call(ctx, MAP(PROGRAMS), PROGRAM_UNWIND);
	lose(LOSS_UNWIND_REFUSED);
}

/* What comes when the walk, and what belongs to it, is done. */
INLINE u32 program_after_walk(struct thread *thread)
{
	return thread->interpreters ? PROGRAM_INTERPRETERS : thread->intent.then;
}

/* Run `then` with the stack that the walk cache told; returns only if the kernel refuses. */
INLINE void go_on(struct pt_regs *ctx, struct thread *thread, u32 then)
{
	thread->intent.then = then;
	tail_call(ctx, MAP(PROGRAMS), program_after_walk(thread));
	lose(LOSS_UNWIND_REFUSED);
}

/*
 * Walk from the caller of the function that was entered. Where it was inlined:
 * from the probed instruction, which is called by the address of the copy's
 * first one.
 */
INLINE void walk_from_entry(struct pt_regs *ctx, struct thread *thread, struct site *site, u32 then)
{
	u64 inlined = -is_any(site->flags & SITE_INLINED), back = site->return_distance;
	u64 slot = STACK_POINTER(ctx) + either(inlined, -8ULL, back), pc = first_word(thread, slot);
	int is_known;

	pc = either(inlined, (PROGRAM_COUNTER(ctx) - back) | FRAME_EXACT, pc);
	is_known = begin_near_walk(thread, pc, slot + 8, FRAME_POINTER(ctx));
	thread->walk.pc += back & inlined;
	thread->walk.back = back & inlined;
	if (is_known)
		go_on(ctx, thread, then);
	else
		walk_then(ctx, thread, then);
}

#endif
