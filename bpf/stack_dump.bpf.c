// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks whose walk ended early: a copy of what user space needs to walk them
 * to their end, with all registers and all rules.
 *
 * Two stacks that were cut after the same frames may go on differently. So the
 * id of a stack that is copied depends on all of the copy that can decide how
 * it goes on: what code is where, rsp, and whatever may be the address of code
 * or of a place on the stack, among the preserved registers and the words from
 * rsp up. User space goes by nothing else. Dead words among them make more ids
 * than there are stacks; what is sent of stacks that end in the same code is
 * limited, and the others stay cut, as their status says.
 */

#include "abi.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "stacks.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"

/* Where the current thread's copy is made: in the ring each would take room until it is read, wanted or not. */
INLINE struct stack_copy *room_for_copy(struct thread *thread)
{
	struct stack_copy *copy = map_lookup(COPY_OF, &thread->tid);

	if (copy)
		return copy;
	map_update(COPY_OF, &thread->tid, BLANK(COPY_OF), NOEXIST);
	return map_lookup(COPY_OF, &thread->tid);
}

/*
 * Where a walk ended: the page of code, or all code in no binary. What can be
 * made of one copy from there can be made of the others too, or of none. 0 if
 * nothing can: the binary is known, and has no rules there.
 */
INLINE u64 place_of_cut(struct thread *thread, struct table *table)
{
	u64 last = thread->stack.depth - 1, frame;

	MASK(last, MAX_FRAMES + 1);
	frame = thread->stack.frames[last];
	if (frame >> FRAME_BINARY_SHIFT == table->anonymous) /* unsupported: a table that was registered said so */
		return thread->walk.status == STACK_UNSUPPORTED ? 0 : frame >> FRAME_BINARY_SHIFT << FRAME_BINARY_SHIFT;
	if (thread->walk.status != STACK_UNSUPPORTED)
		return 0;
	return (frame & ~FRAME_EXACT) >> PAGE_BITS << PAGE_BITS;
}

/* The copies that were sent of stacks that were cut there, NULL if that cannot be kept. */
INLINE u64 *copies_of(u64 place)
{
	u64 *count = map_lookup(COPIES, &place), none = 0;

	if (count)
		return count;
	map_update(COPIES, &place, &none, NOEXIST);
	return map_lookup(COPIES, &place);
}

INLINE void copy_registers(struct pt_regs *ctx, struct stack_copy *copy)
{
	__builtin_memset(copy->registers, 0, sizeof(copy->registers));
	copy->ip = ctx->ip;
	copy->registers[REG_RSP] = ctx->sp;
	copy->registers[REG_RBP] = ctx->bp;
	copy->registers[REG_RBX] = ctx->bx;
	copy->registers[REG_R12] = ctx->r12;
	copy->registers[REG_R13] = ctx->r13;
	copy->registers[REG_R14] = ctx->r14;
	copy->registers[REG_R15] = ctx->r15;
}

/* What a loop over a copy goes by. */
struct copying {
	struct stack_copy *copy;
	u64 at; /* the return probe to come */
	u64 hash;
	u64 first; /* word */
};

INLINE int copy_instance_turn(struct copying *copying, u64 index)
{
	struct stack_copy *copy = copying->copy;
	u64 at = copying->at;

	if (!at)
		return 1;
	MASK(index, RETURN_INSTANCES);
	bpf_probe_read_kernel(&copy->pending[index].slot, 8, (void *)(at + INSTANCE_STACK));
	bpf_probe_read_kernel(&copy->pending[index].address, 8, (void *)(at + INSTANCE_RETURN));
	bpf_probe_read_kernel(&copying->at, 8, (void *)(at + INSTANCE_NEXT));
	return 0;
}

/* The pending return probes, innermost first; those beyond the last are 0. */
INLINE void copy_return_instances(struct stack_copy *copy)
{
	struct copying copying = { .copy = copy, .at = first_return_instance() };

	__builtin_memset(copy->pending, 0, sizeof(copy->pending));
	REPEAT(RETURN_INSTANCES, copy_instance, &copying);
}

INLINE void copy_pages(struct stack_copy *copy)
{
	u64 from = copy->registers[REG_RSP] & ~(PAGE_WORDS * 8ULL - 1);

	copy->pages = 0;
#pragma unroll
	for (int page = 0; page < COPY_PAGES; page++) {
		if (bpf_probe_read_user(&copy->words[page * PAGE_WORDS], PAGE_WORDS * 8,
					(void *)(from + page * PAGE_WORDS * 8)))
			return;
		copy->pages = page + 1;
	}
}

/* 1 if a word is in a range, else 0; by arithmetic, as all here: branches would double the verifier's paths. */
INLINE u64 is_within_range(u64 word, u64 start, u64 length)
{
	u64 distance = word - start;

	BARRIER(distance);
	BARRIER(length);
	distance = ((~distance & length) | ((~distance | length) & (distance - length))) >> 63; /* the borrow */
	BARRIER(distance);
	return distance;
}

/* Mix in a word with its place, if it may be a place on the stack or in code. */
INLINE u64 mixed_if_decisive(struct stack_copy *copy, u64 hash, u64 place, u64 word)
{
	u64 decides = is_within_range(word, copy->registers[REG_RSP], STACK_REACH);

#pragma unroll
	for (int i = 0; i < CODE_RANGES; i++)
		decides |= is_within_range(word, copy->code[i].start, copy->code[i].end - copy->code[i].start);
	BARRIER(decides);
	return hash ^ ((hash ^ mixed(mixed(hash, place), word)) & -decides);
}

INLINE int mix_word_turn(struct copying *copying, u64 index)
{
	u64 at = copying->first + index;

	BARRIER(at);
	if (at >= COPY_WORDS)
		return 1;
	copying->hash = mixed_if_decisive(copying->copy, copying->hash, at + 16, copying->copy->words[at]);
	return 0;
}

/* Mix in all that can decide how the stack goes on. */
INLINE u64 mixed_copy(struct table *table, struct stack_copy *copy, u64 hash)
{
	u64 words = (u64)copy->pages * PAGE_WORDS, sp = copy->registers[REG_RSP];
	struct copying copying = { .copy = copy, .first = (sp & (PAGE_WORDS * 8 - 1)) / 8 };

	hash = mixed(hash, table->identity);
	hash = mixed(hash, copy->ip);
	hash = mixed(hash, sp);
#pragma unroll
	for (int i = 0; i < 16; i++)
		hash = mixed_if_decisive(copy, hash, i, copy->registers[i]);
#pragma unroll
	for (int i = 0; i < RETURN_INSTANCES; i++)
		hash = mixed(mixed(hash, copy->pending[i].slot), copy->pending[i].address);
	if (words <= copying.first)
		return hash;
	copying.hash = hash;
	REPEAT(words - copying.first, mix_word, &copying);
	return copying.hash;
}

int copy_stack(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct stack_copy *copy;
	struct table *table;
	u64 cut, id, index, before, *count;

	if (!thread)
		return 0;
	index = thread->walk.table;
	MASK(index, TABLES);
	table = &VALUE(TABLE_VALUES)->at[index];
	cut = place_of_cut(thread, table);
	if (!cut)
		goto next;
	count = copies_of(cut);
	if (!count || *count >= COPIES_FUTILE)
		goto next;
	copy = room_for_copy(thread);
	if (!copy)
		goto next;
	__builtin_memcpy(copy->code, table->code, sizeof(copy->code));
	copy_registers(ctx, copy);
	copy_pages(copy);
	copy_return_instances(copy);
	before = thread->walk.hash;
	thread->walk.hash = mixed_copy(table, copy, before);
	tally(COUNT_COPIES, 1);
	thread->walk.forgettable = 1;
	id = stack_id(thread);
	if (map_lookup(STACKS, &id))
		goto next;
	copy->id = id;
	copy->cut = cut;
	copy->start = thread->walk.start;
	copy->pid = thread->pid;
	copy->generation = thread->generation;
	if (*count >= COPIES_OF_A_CUT || bpf_ringbuf_output(MAP(COPY_RING), copy, sizeof(*copy), WAKE_NEVER))
		thread->walk.hash = before; /* it stays cut */
	else
		add(count, 1);
next:
	tail_call(ctx, MAP(PROGRAMS), program_after_walk(thread));
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}
