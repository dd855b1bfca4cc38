// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks and mappings, at the entry and the return of their functions.
 *
 * A free is recorded at its entry and an allocation at its return: in between
 * another thread can be given the same address.
 */
#ifndef REFLEAK_ALLOCATIONS_H
#define REFLEAK_ALLOCATIONS_H

#include "abi.h"
#include "events.bpf.h"
#include "freed.bpf.h"
#include "freed_holders.bpf.h"
#include "fronts.bpf.h"
#include "locations.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "x86_64.h"
#include "selection.bpf.h"
#include "stacks.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define IS_ERROR(result) ((result) >= (u64)-4095)

/* Where return probes of this process return to: the kernel's page of trampolines. */
INLINE u64 trampoline_of_task(void)
{
	u64 task = bpf_get_current_task(), mm = 0, area = 0, address = 0;

	bpf_probe_read_kernel(&mm, 8, (void *)(task + TASK_MM));
	bpf_probe_read_kernel(&area, 8, (void *)(mm + MM_XOL_AREA));
	bpf_probe_read_kernel(&address, 8, (void *)(area + XOL_VADDR));
	return address;
}

/*
 * Whether the call that is pending is still on the stack below which `slot`
 * is. It may be gone by longjmp or an exception; then its return address is
 * no longer the trampoline, unless by chance the stack there is still intact.
 */
INLINE int is_inside_pending(struct thread *thread, u64 slot, u64 site)
{
	u64 word = 0;

	if (slot > thread->pending.slot)
		return 0;
	if (slot == thread->pending.slot && site == thread->pending.site)
		return 0;
	bpf_probe_read_user(&word, sizeof(word), (void *)thread->pending.slot);
	if (thread->pending.back)
		return word == thread->pending.back;
	if (!thread->trampoline)
		thread->trampoline = trampoline_of_task();
	return word == thread->trampoline;
}

/*
 * A function of the heap calls another one with less than this on the stack in
 * between; a signal comes with more: the 128 bytes that it passes over, and the
 * registers, 952 and more.
 */
#define NEAREST_HANDLER 1024

/* Whether a call at `slot`, inside of the pending one, is a signal handler's, which makes a block of its own. */
INLINE int is_of_handler(struct thread *thread, u64 slot, u8 operation)
{
	return operation <= OP_REALLOC && thread->pending.slot - slot > NEAREST_HANDLER;
}

/* Whether the call inside of the pending one maps memory for an allocator that has taken the place of libc's. */
INLINE int is_of_heap(struct thread *thread, u8 operation)
{
	return operation >= OP_MAP && SHARED->tells_heap && !thread->interrupted.slot;
}

/* Have the call at `slot`, which returns, be the pending one again if a handler's has stood in its way. */
INLINE void resume_interrupted(struct thread *thread, u64 slot)
{
	if (thread->interrupted.slot != slot)
		return;
	thread->pending = thread->interrupted;
	thread->interrupted.slot = 0;
}

/* Forget a pending call that was left without a return. */
INLINE void drop_pending(struct pending *pending)
{
	lose(LOSS_PENDING_STALE);
	pending->slot = 0;
}

/* Remove a live block; returns whether it was known, with what was known of it. */
INLINE int take_block(struct thread *thread, u64 address, u16 group, struct allocation *taken)
{
	struct key key = key_of(thread, address, group);

	return remove_block(&key, taken);
}

INLINE void keep_block(struct thread *thread, u64 address, u16 group, struct allocation *block)
{
	struct key key = key_of(thread, address, group);

	if (!add_to_front(&key, block) && map_update(LIVE, &key, block, ANY))
		lose(LOSS_LIVE_FULL);
}

/* Keep the ghost that another one is about to replace: the address was used again, after another fork. */
INLINE void keep_older_ghost(struct ghost_key *key)
{
	struct ghost *older = map_lookup(GHOSTS, &key->key);

	if (!older)
		return;
	key->time_ns = older->allocation.time_ns;
	if (map_update(OLDER_GHOSTS, key, older, ANY))
		lose(LOSS_GHOSTS_FULL);
}

/*
 * Account for a block's end, which was called from `caller`, 0 where that does
 * not matter. A child made since may still hold a copy of it. Returns what
 * count_freed does.
 */
INLINE u64 block_ended(struct thread *thread, u64 address, u16 group, struct allocation *block, u64 caller)
{
	u64 now = bpf_ktime_get_ns(), freed;
	struct ghost_key key; /* one for all: the stack is small */

	thread->totals.freed++;
	thread->totals.freed_bytes += block->size;
	key.key = key_of(thread, address, group);
	remember_freed(&key.key, block->stack, block->size, now);
	freed = count_freed(block->stack, block->size, now - block->time_ns, caller);
	if (thread->forked_ns > block->time_ns) {
		struct ghost ghost = { .allocation = *block, .freed_ns = now };

		keep_older_ghost(&key);
		if (map_update(GHOSTS, &key.key, &ghost, ANY))
			lose(LOSS_GHOSTS_FULL);
	}
	return freed;
}

INLINE void inherited_freed(struct key *key, u64 now)
{
	if (map_update(INHERITED_FREES, key, &now, NOEXIST) == NO_ROOM)
		lose(LOSS_INHERITED_FULL);
}

/* A free of a block that is not known: not kept, its parent's copy, whose `birth` may be known, or older than the trace. */
INLINE void unknown_freed(struct thread *thread, u64 address, u16 group, u64 birth, u64 size)
{
	struct key key = key_of(thread, address, group);
	u64 now = bpf_ktime_get_ns();

	thread->totals.unknown_frees++;
	if (thread->is_copy)
		inherited_freed(&key, now);
	else if (SHARED->unknown_frees != UNKNOWN_FREES_MAY_BE_OLDER)
		return;
	remember_freed(&key, birth, size, now);
}

/* What the second argument of a free is, by enum given. `new char[0]` makes a block of 1. */
INLINE u64 given_with(u64 argument, struct allocation *block)
{
	u64 size = block->size ^ (!argument & (block->size == 1));

	return (argument == size) * GIVEN_SIZE | (argument && argument == block->alignment) * GIVEN_ALIGNMENT;
}

/* Whether the stack of the nth free of a kind is walked: of the first 16, and with a chance of 16 to n of the others. */
INLINE int is_worth_a_look(u64 n)
{
	return n && (n <= 16 || (bpf_get_prandom_u32() * n) >> 32 < 16);
}

/*
 * Find out where a block is freed, of some: all of the first 16 that its stack
 * made, the first from each place and with each kind of argument, and the nth
 * with a chance of 16 to n. To walk the stack at each free would double the cost
 * of a block.
 */
INLINE void look_at_free(struct pt_regs *ctx, struct thread *thread, struct site *site, struct allocation *block,
			 u64 argument)
{
	struct intent *intent = &thread->intent;
	u64 given = given_with(argument, block);
	u64 caller = 0, freed;
	int is_looked_at;

	bpf_probe_read_user(&caller, sizeof(caller), (void *)(STACK_POINTER(ctx) + site->return_distance));
	freed = block_ended(thread, intent->address, site->group, block, caller ^ given << 48);
	is_looked_at = is_worth_a_look(freed);
	if (!find_held(thread, intent->address, block, freed, is_looked_at) && !is_looked_at)
		return;
	intent->object = is_looked_at ? block->stack : 0;
	intent->size = block->size;
	intent->value = argument;
	intent->count = given;
	intent->count_read = block->alignment;
	intent->flags = ERROR_NONE;
	walk_from_entry(ctx, thread, site, PROGRAM_FREED);
}

/* Have the stack walked where a described function frees a block, as often; of what it was given nothing is judged. */
INLINE void look_at_described_free(struct thread *thread, struct site *site, struct allocation *block, u64 slot)
{
	struct intent *intent = &thread->intent;
	u64 caller = 0, freed;
	int is_looked_at;

	bpf_probe_read_user(&caller, sizeof(caller), (void *)slot);
	freed = block_ended(thread, intent->address, site->group, block, caller);
	is_looked_at = is_worth_a_look(freed);
	if (!find_held(thread, intent->address, block, freed, is_looked_at) && !is_looked_at)
		return;
	intent->object = 0;
	intent->flags = ERROR_NONE;
	intent->then = PROGRAM_FREED;
}

/* Have it judged what the free of an ancestor's block, of which the intent is told, was given. */
INLINE void look_at_inherited(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	READ_REGISTERS(registers, ctx);
	struct intent *intent = &thread->intent;
	struct allocation block = { .size = intent->size, .alignment = intent->count_read };

	intent->value = value_at(ctx, registers, &site->size);
	intent->count = GIVEN_INHERITED | given_with(intent->value, &block);
	if (site->group)
		intent->object = 0;
}

/* Count a pair of stacks, the birth of a block and its free. */
INLINE void note_free_site(struct thread *thread, struct free_site *key, struct free_seen *first)
{
	struct free_seen *seen = map_lookup(FREE_SITES, key);

	if (seen) {
		add(&seen->count, 1);
		return;
	}
	first->count = 1;
	first->pid = thread->pid;
	first->generation = thread->generation;
	first->site = thread->intent.site;
	map_update(FREE_SITES, key, first, NOEXIST);
}

/*
 * Judge a free or realloc of what is not alive, or say where memory is
 * unmapped, in a program of its own: both are rare, and much to verify.
 */
INLINE void judge_unknown(struct pt_regs *ctx, struct thread *thread, u64 address)
{
	thread->intent.address = address;
	tail_call(ctx, MAP(PROGRAMS), PROGRAM_UNKNOWN_FREE);
	lose(LOSS_UNWIND_REFUSED);
}

INLINE void free_entered(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	READ_REGISTERS(registers, ctx);
	u64 address = value_at(ctx, registers, &site->object), argument = value_at(ctx, registers, &site->size);
	struct allocation block;

	if (!address)
		return;
	if (take_block(thread, address, site->group, &block)) {
		note_free(thread, address, STACK_POINTER(ctx) + site->return_distance);
		thread->intent.address = address;
		look_at_free(ctx, thread, site, &block, argument);
		return;
	}
	if (thread->pending.slot && thread->pending.address == address)
		return;
	judge_unknown(ctx, thread, address);
}

INLINE void send_range(struct thread *thread, u8 operation, u8 remap, u64 old_address, u64 old_length)
{
	struct event *event = new_event(thread, operation, thread->pending.address);

	if (!event)
		return;
	event->length = thread->pending.size;
	event->old_address = old_address;
	event->old_length = old_length;
	event->remap = remap;
	send_event(event);
}

INLINE void allocation_entered(struct pt_regs *ctx, struct thread *thread, struct site *site, u64 index)
{
	READ_REGISTERS(registers, ctx);
	u64 slot = STACK_POINTER(ctx) + site->return_distance;
	struct pending *pending = &thread->pending;
	u8 operation = site->operation;
	u64 size, count, by_heap = 0;

	if (thread->interrupted.slot && slot > thread->interrupted.slot)
		drop_pending(&thread->interrupted);
	if (pending->slot) {
		if (!is_inside_pending(thread, slot, index)) {
			drop_pending(pending);
		} else if (is_of_heap(thread, operation)) {
			thread->interrupted = *pending;
			by_heap = operation == OP_MAP ? MAPPED_BY_HEAP : 0;
		} else if (is_of_handler(thread, slot, operation)) {
			if (thread->interrupted.slot)
				lose(LOSS_PENDING_STALE);
			thread->interrupted = *pending;
		} else {
			return; /* malloc inside calloc: counts once, as the outer call */
		}
	}
	size = value_at(ctx, registers, &site->size);
	count = value_at(ctx, registers, &site->count);
	pending->slot = slot;
	pending->site = index;
	pending->had_old = OLD_NONE;
	pending->back = 0;
	if (site->flags & SITE_WRAPPER)
		bpf_probe_read_user(&pending->back, sizeof(pending->back), (void *)slot);
	pending->size = site->flags & SITE_PRODUCT ? size * count : size;
	pending->extra = count | by_heap;
	pending->address = value_at(ctx, registers, site->flags & SITE_OUT_POINTER ? &site->name : &site->object);
	if (operation == OP_REALLOC && pending->address) {
		pending->had_old = take_block(thread, pending->address, site->group, &pending->old);
		if (pending->had_old == OLD_NONE)
			judge_unknown(ctx, thread, pending->address);
	} else if (operation == OP_UNMAP) {
		thread->intent.size = pending->size;
		judge_unknown(ctx, thread, pending->address);
	} else if (operation == OP_REMAP) {
		send_range(thread, OP_REMAP, REMAP_ENTRY, pending->address, count);
	}
}

/*
 * Settle what a realloc that has returned did to the block at `address`, of
 * which it `had` this `old` one: it is freed, or alive as before. The intent
 * has what was returned, and the size that was asked for.
 */
INLINE void settle_old(struct thread *thread, struct site *site, u64 had, u64 address, struct allocation *old)
{
	struct intent *intent = &thread->intent;
	int freed = intent->address || (!intent->size && site->flags & SITE_FREES_ON_ZERO);

	if (had == OLD_TAKEN) {
		if (freed)
			block_ended(thread, address, site->group, old, 0);
		else
			keep_block(thread, address, site->group, old);
	} else if (had == OLD_UNKNOWN && freed) {
		unknown_freed(thread, address, site->group, 0, 0);
	}
}

/* Whether a realloc of a block that was alive has returned nothing since it was to free it: where, is the intent then. */
INLINE int has_freed_only(struct thread *thread, struct site *site, u64 address)
{
	struct intent *intent = &thread->intent;

	if (intent->size || !(site->flags & SITE_FREES_ON_ZERO))
		return 0;
	intent->address = address;
	intent->object = 0;
	intent->flags = ERROR_NONE;
	intent->then = PROGRAM_FREED;
	return 1;
}

/* Settle the pending call; returns whether something was made that is to be kept, with the intent to. */
INLINE int allocation_returned(struct pt_regs *ctx, struct thread *thread)
{
	struct pending *pending = &thread->pending;
	u64 result = RETURN_VALUE(ctx);
	u64 index = pending->site;
	struct intent *intent = &thread->intent;
	struct site *site;
	u8 operation;

	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	operation = site->operation;
	pending->slot = 0;
	intent->site = index;
	intent->operation = operation;
	intent->size = pending->size;
	intent->value = pending->extra;
	intent->object = pending->address;
	intent->then = PROGRAM_ALLOCATED;
	if (operation == OP_UNMAP || operation == OP_REMAP || operation == OP_MAP) {
		if (thread->interrupted.slot) /* it was the heap's */
			resume_interrupted(thread, thread->interrupted.slot);
		if (IS_ERROR(result)) {
			if (operation != OP_MAP)
				send_range(thread, OP_UNDO, 0, 0, 0);
			return 0;
		}
		intent->address = result;
		intent->then = PROGRAM_MAPPED;
		return operation != OP_UNMAP;
	}
	if (site->flags & SITE_OUT_POINTER) {
		u64 out = 0;

		if ((u32)result)
			return 0;
		if (bpf_probe_read_user(&out, sizeof(out), (void *)pending->address))
			lose(LOSS_ARGUMENT_UNREAD);
		result = out;
	}
	intent->address = result;
	if (operation == OP_REALLOC) {
		settle_old(thread, site, pending->had_old, pending->address, &pending->old);
		intent->name = pending->had_old == OLD_TAKEN ? pending->old.stack : 0;
		if (!result && intent->name && has_freed_only(thread, site, pending->address))
			return !(site->flags & SITE_WRAPPER);
	}
	return result && block_made(thread, intent->size, site->flags & SITE_WRAPPER);
}

/* Note where a realloc ended a block. */
INLINE void note_realloc(struct thread *thread, u64 stack)
{
	struct pending *pending = &thread->pending;

	if (thread->intent.operation == OP_REALLOC && pending->had_old == OLD_TAKEN) {
		struct free_site key = { .made = pending->old.stack, .freed = stack, .given = GIVEN_REALLOC };
		struct free_seen first = { .address = pending->address, .size = pending->old.size };

		note_free_site(thread, &key, &first);
	}
}

/* Keep the block of the intent, whose stack is known. */
INLINE void keep_allocated(struct thread *thread)
{
	struct intent *intent = &thread->intent;
	struct allocation block = {};
	struct stack_totals *totals;
	u64 index = intent->site, stack;

	MASK(index, MAX_SITES);
	totals = intern_stack(thread, &stack);
	count_made(totals, intent->size, index);
	block.size = intent->size;
	block.time_ns = bpf_ktime_get_ns();
	block.stack = stack;
	block.tid = thread->tid;
	block.site = index;
	keep_realloc(thread, SITES->at[index].group, stack);
	if (!SITES->at[index].group)
		note_realloc(thread, stack);
	if (intent->operation == OP_ALLOC && !(SITES->at[index].flags & SITE_PRODUCT) && intent->value <= 1 << 15)
		block.alignment = intent->value;
	keep_block(thread, intent->address, SITES->at[index].group, &block);
}

#endif
