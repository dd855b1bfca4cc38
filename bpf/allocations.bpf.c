// SPDX-License-Identifier: GPL-2.0
/* What is done with a new block or mapping once its stack is known. */

#include "abi.h"
#include "allocations.bpf.h"
#include "events.bpf.h"
#include "freed.bpf.h"
#include "indirect_calls.bpf.h"
#include "maps.bpf.h"
#include "stacks.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "x86_64.h"

int allocated(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();

	if (thread)
		keep_allocated(thread);
	return 0;
}

/* Keep where a block was freed, and from what it was given. */
INLINE void keep_free_site(struct pt_regs *ctx, struct thread *thread, u64 index, u64 stack)
{
	struct free_site key = { .freed = stack };
	struct free_seen first = {};

	key.made = thread->intent.object;
	if (!key.made) /* what the function was given is not judged */
		return;
	key.given = thread->intent.count;
	first.address = thread->intent.address;
	first.size = thread->intent.size;
	first.argument = thread->intent.value;
	first.alignment = thread->intent.count_read;
	if (!(SITES->at[index].flags & SITE_WRAPPER))
		note_called(ctx, thread, STACK_POINTER(ctx) + SITES->at[index].return_distance, &key, &first);
	note_free_site(thread, &key, &first);
}

int freed(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	u64 index, stack;

	if (!thread)
		return 0;
	intern_stack(thread, &stack);
	index = thread->intent.site;
	MASK(index, MAX_SITES);
	if (thread->intent.flags) {
		send_bad_free(thread, SITES->at[index].group, stack);
		return 0;
	}
	keep_release(thread, thread->intent.address, SITES->at[index].group, stack);
	keep_free_site(ctx, thread, index, stack);
	if (has_held(thread)) {
		thread->freed_holder.freed = stack;
		tail_call(ctx, MAP(PROGRAMS), PROGRAM_HOLDER_FREED);
	}
	return 0;
}

int mapped(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct stack_totals *totals;
	struct intent *intent;
	struct event *event;
	u64 stack;

	if (!thread)
		return 0;
	intent = &thread->intent;
	totals = intern_stack(thread, &stack);
	if (intent->operation != OP_UNMAP && !(intent->operation == OP_MAP && intent->value & MAPPED_BY_HEAP))
		count_made(totals, intent->size, intent->site);
	event = new_event(thread, intent->operation, intent->address);
	if (!event)
		return 0;
	event->length = intent->size;
	event->stack = stack;
	if (intent->operation == OP_REMAP) {
		event->old_address = intent->object;
		event->remap = REMAP_RETURN;
	} else if (intent->operation == OP_MAP) {
		event->mapping_flags = intent->value;
	}
	send_event(event);
	return 0;
}
