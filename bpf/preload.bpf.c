// SPDX-License-Identifier: GPL-2.0
/*
 * The places in the library of --preload (tracer/preload/wrappers.S) that are
 * behind the real call, where all is known of what it made. Those before it, of
 * free and realloc, are as other functions' entries.
 */

#include "abi.h"
#include "allocations.bpf.h"
#include "ids.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "selection.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "x86_64.h"

/* From its first step on a program is known to run with the library: what else is probed of the heap does not count. */
INLINE void note_preloaded(struct thread *thread)
{
	u32 pid = current_ids() >> 32;
	struct process *process = map_lookup(PROCESSES, &pid);

	if (process)
		process->is_preloaded = 1;
	thread->is_preloaded = 1;
}

/* Settle what is made where no call is pending, by the registers that wrappers use; returns whether it is to be kept. */
INLINE int made_at_once(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	struct intent *intent = &thread->intent;

	intent->address = FIRST_ARGUMENT(ctx);
	intent->size = SECOND_ARGUMENT(ctx);
	intent->value = site->count.kind ? THIRD_ARGUMENT(ctx) : 0;
	intent->operation = OP_ALLOC;
	return intent->address && block_made(thread, intent->size, 1);
}

INLINE int wrapper_made(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	int is_kept;

	resume_interrupted(thread, STACK_POINTER(ctx));
	if (site->operation == OP_REALLOC && thread->pending.slot == STACK_POINTER(ctx) && thread->pending.back)
		is_kept = allocation_returned(ctx, thread);
	else
		is_kept = made_at_once(ctx, thread, site);
	return is_kept && !(site->flags & SITE_DROPPED);
}

int on_wrapper(struct pt_regs *ctx)
{
	struct thread *thread = current_thread();
	u64 index = bpf_get_attach_cookie(ctx);
	struct site *site;
	u8 operation;

	if (!thread || is_of_other(thread, index))
		return 0;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	operation = site->operation;
	if (operation == OP_NONE)
		note_preloaded(thread);
	if (!thread->is_preloaded)
		return 0;
	thread->intent.site = index;
	thread->intent.operation = operation;
	if (operation == OP_UNDO)
		lose(LOSS_DEEP_BOUND);
	else if (operation && wrapper_made(ctx, thread, site))
		walk_from_entry(ctx, thread, site, PROGRAM_ALLOCATED);
	return 0;
}
