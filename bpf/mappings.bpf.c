// SPDX-License-Identifier: GPL-2.0
/*
 * Executable memory that the program itself maps and takes away: behind the
 * system calls of libc's mmap, munmap, mremap and mprotect, whose arguments
 * still stand in their registers there.
 *
 * What is gone leaves the unwinder's table here and now: whatever code comes
 * to stand there later must not get its name. What has come is waited for.
 */

#include "abi.h"
#include "allocations.bpf.h"
#include "ids.bpf.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "verifier.h"
#include "x86_64.h"

#define PROTECTION_WRITE 2
#define PROTECTION_EXECUTE 4
#define MAPPING_ANONYMOUS 32
#define USER_END (1ULL << 47)
#define CUTS 32

enum removal {
	REMOVED_NOTHING,
	REMOVED,
	REMOVED_MORE = 2, /* the table lacks what is there: to be read again */
	REMOVED_LESS = 4, /* there is more to remove than was done */
};

/* The range that is taken out of a table, from its mapping `first` on. */
struct cut {
	struct table *table;
	u64 start;
	u64 end;
	u64 first;
	u64 only_look;
	u64 removal;
	u64 is_over; /* no other mapping is in the range */
};

INLINE int cut_turn(struct cut *cut, u64 turn)
{
	u64 index = cut->first + turn, start = cut->start, end = cut->end, from, to;
	struct mapping *mapping;

	cut->is_over = 1;
	if (index >= TABLE_MAPPINGS)
		return 1;
	MASK(index, TABLE_MAPPINGS);
	mapping = &cut->table->mappings[index];
	from = mapping->start;
	to = mapping->end;
	if (from >= end)
		return 1;
	cut->is_over = 0;
	if (to <= start || to <= from)
		return 0;
	cut->removal |= REMOVED;
	if (cut->only_look) {
		cut->is_over = 1;
		return 1;
	}
	if (start > from) {
		mapping->end = start;
		if (end < to)
			cut->removal |= REMOVED_MORE;
	} else if (end < to) {
		mapping->start = end;
	} else {
		mapping->end = from;
	}
	return 0;
}

/*
 * Take a range out of a table, or only look whether there is something in it.
 * Rows stay in order of their starts, so that a walk that is under way at the
 * same time finds what it would have found before or after. Of a mapping that
 * is cut in the middle the end is lost.
 */
INLINE u64 cut(struct table *table, u64 start, u64 end, u32 only_look)
{
	struct cut cut = {
		.table = table,
		.start = start,
		.end = end,
		.first = index_below(table, start),
		.only_look = only_look,
	};

	REPEAT(CUTS, cut, &cut);
	return cut.is_over ? cut.removal : REMOVED_LESS;
}

/* Take a range out of what the unwinder knows of an address space. */
INLINE u64 remove_code(u32 space, u64 start, u64 length)
{
	u64 end = start + ((length + 4095) & ~4095ULL), index, removal;
	u32 *number = map_lookup(TABLE_OF, &space);
	u32 before, none = 0;

	if (!number || start >= USER_END || length >= USER_END || end <= start)
		return REMOVED_NOTHING;
	before = *number;
	index = before;
	MASK(index, TABLES);
	/* A shared table is right for the others: this process waits without any for one of its own. */
	removal = cut(&VALUE(TABLE_VALUES)->at[index], start, end, before & TABLE_SHARED);
	if (!removal)
		return removal;
	if (removal & REMOVED_LESS || before & TABLE_SHARED) {
		map_update(TABLE_OF, &space, &none, ANY);
		removal |= REMOVED_MORE;
	}
	number = map_lookup(TABLE_OF, &space);
	if (!number || *number != before) /* the tracer has put another table in its place meanwhile */
		removal |= REMOVED_MORE;
	next_epoch();
	return removal;
}

/* Whether all of a range is known as code of one binary. */
INLINE int is_known_code(u32 number, u64 start, u64 end)
{
	u64 index = number, at;
	struct table *table;

	MASK(index, TABLES);
	table = &VALUE(TABLE_VALUES)->at[index];
	at = index_below(table, start);
	MASK(at, TABLE_MAPPINGS);
	return start >= table->mappings[at].start && end <= table->mappings[at].end;
}

/* Whether the first or the last byte of a range is known as code. */
INLINE int touches_known_code(u32 number, u64 start, u64 end)
{
	return is_known_code(number, start, start + 1) || is_known_code(number, end - 1, end);
}

/* What one of these system calls did: the range that is no longer what it was. */
struct change {
	u64 start;
	u64 length;
	u64 wait; /* there may be code that the table lacks */
	u64 patches; /* code that is known may be written to: breakpoints too, and over them */
};

INLINE void read_change(struct pt_regs *ctx, struct change *change, u32 number, struct key *code)
{
	u64 call = (u64)bpf_get_attach_cookie(ctx) >> 8, *known;
	u64 first = FIRST_ARGUMENT(ctx), length = SECOND_ARGUMENT(ctx), third = THIRD_ARGUMENT(ctx),
	    flags = FOURTH_OF_SYSTEM_CALL(ctx), result = RETURN_VALUE(ctx);
	u32 none = 0;

	/* Each is loaded at its own place: the verifier wants no choice among the addresses of a context. */
	BARRIER(first);
	BARRIER(third);
	BARRIER(result);
	change->start = first;
	change->length = length;
	if (call == NR_MMAP) {
		change->start = result;
		change->wait = third & PROTECTION_EXECUTE && !(flags & MAPPING_ANONYMOUS);
	} else if (call == NR_MREMAP) {
		change->start = result;
		change->length = third;
		if (is_known_code(number, first,
				  first + 1)) { /* it has moved: wait without a table for the right one */
			map_update(TABLE_OF, &code->pid, &none, ANY);
			change->wait = 1;
		}
	}
	if (call == NR_MPROTECT && third & PROTECTION_WRITE && touches_known_code(number, first, first + length)) {
		change->patches = 1;
		change->wait = 1;
		if (third & PROTECTION_EXECUTE)
			change->length = 0;
		return;
	}
	code->address = change->start;
	known = map_lookup(CODE_SEEN, code);
	if (call == NR_MMAP || call == NR_MUNMAP || call == NR_MREMAP) {
		if (known)
			map_delete(CODE_SEEN, code);
	} else if (known && *known == length) { /* memory of a compiler, in no file: no table has it */
		change->length = 0;
	} else if (third & PROTECTION_EXECUTE) {
		change->wait = !is_known_code(number, first, first + length);
		change->length = 0;
	}
}

INLINE int mapping_changed(struct pt_regs *ctx, int can_wait)
{
	u64 id = current_ids(), removal, ticket = 0;
	u32 pid = id >> 32, *number;
	struct process *process = map_lookup(PROCESSES, &pid);
	struct change change = {};
	struct control *control;
	struct key code = {};

	if (IS_ERROR((u64)RETURN_VALUE(ctx)) || !process || process->state != PROCESS_TRACED || !SHARED->armed)
		return 0;
	code.pid = process->space;
	code.generation = process->generation;
	number = map_lookup(TABLE_OF, &code.pid);
	if (!number || !*number) /* the loader's hold comes first */
		return 0;
	read_change(ctx, &change, *number & ~TABLE_SHARED, &code);
	removal = remove_code(code.pid, change.start, change.length);
	if (removal & REMOVED_MORE)
		change.wait = 1;
	if (!removal && !change.wait)
		return 0;
	if (change.wait)
		next_epoch();
	control = new_control(change.wait ? CONTROL_MAPPED : CONTROL_UNMAPPED, code.pid);
	if (!control)
		return 0;
	if (change.patches)
		control->kind = CONTROL_PATCHES;
	control->generation = code.generation;
	control->range.start = change.start;
	control->range.length = SECOND_ARGUMENT(ctx);
	if (can_wait && change.wait) {
		if (tracer_answers(0))
			ticket = new_ticket(0);
		else
			lose(LOSS_HOLD_EXPIRED);
	}
	control->ticket = ticket;
	bpf_ringbuf_submit(control, WAKE_NOW);
	if (ticket)
		wait_for_release(ctx, ticket);
	return 0;
}

int on_mapping(struct pt_regs *ctx)
{
	return mapping_changed(ctx, 1);
}

/* The same for kernels whose uprobe programs cannot wait. */
int on_mapping_passing(struct pt_regs *ctx)
{
	return mapping_changed(ctx, 0);
}
