// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks whose walk ended early: what user space needs to walk them
 * to their end, with all registers and all rules.
 *
 * Two stacks that were cut after the same frames may go on differently. So the
 * id of a stack that is dumped depends on all of the dump that can decide how
 * it goes on: what code is where, the stack pointer, and whatever may be the address of code
 * or of a place on the stack, among the preserved registers and the words from
 * the stack pointer up. User space goes by nothing else. Dead words among them make more ids
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
#include "x86_64.h"

/* Where the current thread's dump is made: in the ring each would take room until it is read, wanted or not. */
INLINE struct stack_dump *room_for_dump(struct thread *thread)
{
	struct stack_dump *dump = map_lookup(DUMP_OF, &thread->tid);

	if (dump)
		return dump;
	map_update(DUMP_OF, &thread->tid, BLANK(DUMP_OF), NOEXIST);
	return map_lookup(DUMP_OF, &thread->tid);
}

/*
 * Where a walk ended: the page of code, or all code in no binary. What can be
 * made of one dump from there can be made of the others too, or of none. 0 if
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

/* The dumps that were sent of stacks that were cut there, NULL if that cannot be kept. */
INLINE u64 *dumps_of(u64 place)
{
	u64 *count = map_lookup(DUMPS, &place), none = 0;

	if (count)
		return count;
	map_update(DUMPS, &place, &none, NOEXIST);
	return map_lookup(DUMPS, &place);
}

INLINE void dump_registers(struct pt_regs *ctx, struct stack_dump *dump)
{
	__builtin_memset(dump->registers, 0, sizeof(dump->registers));
	dump->ip = PROGRAM_COUNTER(ctx);
	read_preserved(dump->registers, ctx);
}

/* What a loop over a dump goes by. */
struct dumping {
	struct stack_dump *dump;
	u64 at; /* the return probe to come */
	u64 hash;
	u64 first; /* word */
};

INLINE int dump_instance_turn(struct dumping *dumping, u64 index)
{
	struct stack_dump *dump = dumping->dump;
	u64 at = dumping->at;

	if (!at)
		return 1;
	MASK(index, RETURN_INSTANCES);
	bpf_probe_read_kernel(&dump->pending[index].slot, 8, (void *)(at + INSTANCE_STACK));
	bpf_probe_read_kernel(&dump->pending[index].address, 8, (void *)(at + INSTANCE_RETURN));
	bpf_probe_read_kernel(&dumping->at, 8, (void *)(at + INSTANCE_NEXT));
	return 0;
}

/* The pending return probes, innermost first; those beyond the last are 0. */
INLINE void dump_return_instances(struct stack_dump *dump)
{
	struct dumping dumping = { .dump = dump, .at = first_return_instance() };

	__builtin_memset(dump->pending, 0, sizeof(dump->pending));
	REPEAT(RETURN_INSTANCES, dump_instance, &dumping);
}

INLINE void dump_pages(struct stack_dump *dump)
{
	u64 from = dump->registers[STACK_POINTER_ID] & ~(PAGE_WORDS * 8ULL - 1);

	dump->pages = 0;
#pragma unroll
	for (int page = 0; page < DUMP_PAGES; page++) {
		if (bpf_probe_read_user(&dump->words[page * PAGE_WORDS], PAGE_WORDS * 8,
					(void *)(from + page * PAGE_WORDS * 8)))
			return;
		dump->pages = page + 1;
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
INLINE u64 mixed_if_decisive(struct stack_dump *dump, u64 hash, u64 place, u64 word)
{
	u64 decides = is_within_range(word, dump->registers[STACK_POINTER_ID], STACK_REACH);

#pragma unroll
	for (int i = 0; i < CODE_RANGES; i++)
		decides |= is_within_range(word, dump->code[i].start, dump->code[i].end - dump->code[i].start);
	BARRIER(decides);
	return hash ^ ((hash ^ mixed(mixed(hash, place), word)) & -decides);
}

INLINE int mix_word_turn(struct dumping *dumping, u64 index)
{
	u64 at = dumping->first + index;

	BARRIER(at);
	if (at >= DUMP_WORDS)
		return 1;
	dumping->hash = mixed_if_decisive(dumping->dump, dumping->hash, at + 16, dumping->dump->words[at]);
	return 0;
}

/* Mix in all that can decide how the stack goes on. */
INLINE u64 mixed_dump(struct table *table, struct stack_dump *dump, u64 hash)
{
	u64 words = (u64)dump->pages * PAGE_WORDS, sp = dump->registers[STACK_POINTER_ID];
	struct dumping dumping = { .dump = dump, .first = (sp & (PAGE_WORDS * 8 - 1)) / 8 };

	hash = mixed(hash, table->identity);
	hash = mixed(hash, dump->ip);
	hash = mixed(hash, sp);
#pragma unroll
	for (int i = 0; i < REGISTERS; i++)
		hash = mixed_if_decisive(dump, hash, i, dump->registers[i]);
#pragma unroll
	for (int i = 0; i < RETURN_INSTANCES; i++)
		hash = mixed(mixed(hash, dump->pending[i].slot), dump->pending[i].address);
	if (words <= dumping.first)
		return hash;
	dumping.hash = hash;
	REPEAT(words - dumping.first, mix_word, &dumping);
	return dumping.hash;
}

int dump_stack(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct stack_dump *dump;
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
	count = dumps_of(cut);
	if (!count || *count >= DUMPS_FUTILE)
		goto next;
	dump = room_for_dump(thread);
	if (!dump)
		goto next;
	__builtin_memcpy(dump->code, table->code, sizeof(dump->code));
	dump_registers(ctx, dump);
	dump_pages(dump);
	dump_return_instances(dump);
	before = thread->walk.hash;
	thread->walk.hash = mixed_dump(table, dump, before);
	tally(COUNT_DUMPS, 1);
	thread->walk.forgettable = 1;
	id = stack_id(thread);
	if (map_lookup(STACKS, &id))
		goto next;
	dump->id = id;
	dump->cut = cut;
	dump->start = thread->walk.start;
	dump->pid = thread->pid;
	dump->generation = thread->generation;
	if (*count >= DUMPS_OF_A_CUT || bpf_ringbuf_output(MAP(DUMP_RING), dump, sizeof(*dump), WAKE_NEVER))
		thread->walk.hash = before; /* it stays cut */
	else
		add(count, 1);
next:
	tail_call(ctx, MAP(PROGRAMS), program_after_walk(thread));
	lose(LOSS_UNWIND_REFUSED);
	return 0;
}
