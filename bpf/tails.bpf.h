// SPDX-License-Identifier: GPL-2.0
/*
 * Callers of code that has no unwind table and keeps no frame pointer, such as
 * the trampolines of `python3 -X perf`: where the code at the return address
 * runs straight to its `ret`, it says itself where its own return address is.
 *
 * Decoded by arithmetic, not by branches: see tables.bpf.h.
 */
#ifndef REFLEAK_TAILS_H
#define REFLEAK_TAILS_H

#define TAIL_POPS 6
#define CODE_PAGE 4096

enum tail_kind {
	TAIL_NONE,
	TAIL_RSP,	/* the return address is `size` bytes above rsp */
	TAIL_LEAVE,	/* and here above where rbp points */
};

struct tail {
	u64 kind;
	u64 size;
	u64 pops_bp;
	u64 bp_at;	/* from rsp */
};

/* What 8 bytes of code do: [add $size, %rsp] [pop ...] [leave] ret. */
INLINE struct tail read_tail(u64 code)
{
	u64 adds = is_equal(code & 0x80ffffff, 0xc48348);
	u64 size = (code >> 24 & 0x7f) & -adds;
	u64 pops_bp = 0, bp_at = 0, is_strange = 0, leaves, returns;

	code >>= adds << 5;
#pragma unroll
	for (int i = 0; i < TAIL_POPS; i++) {
		u64 is_wide = is_equal(code & 0xff, 0x41);
		u64 pops, is_bp;

		code >>= is_wide << 3;
		pops = is_equal(code & 0xf8, 0x58) & (is_wide | (is_equal(code & 0xff, 0x5c) ^ 1));	/* not rsp */
		is_bp = is_equal(code & 0xff, 0x5d) & (is_wide ^ 1);
		is_strange |= is_wide & (pops ^ 1);
		bp_at = (bp_at & (is_bp - 1)) | (size & -is_bp);
		pops_bp |= is_bp;
		size += pops << 3;
		code >>= pops << 3;
	}
	leaves = is_equal(code & 0xff, 0xc9);
	is_strange |= leaves & pops_bp;
	code >>= leaves << 3;
	returns = is_equal(code & 0xff, 0xc3) & (is_strange ^ 1);
	return (struct tail){ .kind = returns + (returns & leaves), .size = size, .pops_bp = pops_bp, .bp_at = bp_at };
}

/*
 * Whether a call stands before an address. What follows the call of a function
 * that never returns is not what will run: there the tail would be another's.
 * A forked child may not have the page yet: then it must be known code.
 */
INLINE int follows_call(struct walk *walk, struct table *table, u64 address)
{
	struct mapping *mapping = locate(walk, table, address - 1);
	u64 calls;

	if (bpf_probe_read_user(&walk->code, 8, (void *)(address - 8)))
		return address > mapping->start && address <= mapping->end;
	calls = is_equal(walk->code >> 24 & 0xff, 0xe8);	/* call rel32 */
#pragma unroll
	for (int at = 1; at <= 6; at++)				/* ff /2, of 2 to 7 bytes */
		calls |= is_equal(walk->code >> (at << 3) & 0x38ff, 0x10ff);
	return calls;
}

/* Read the code at walk->pc, with zeros for what is behind the end of memory; returns whether there is any. */
INLINE int read_code(struct walk *walk)
{
	u64 last = (walk->pc | (CODE_PAGE - 1)) - 7;

	if (!bpf_probe_read_user(&walk->code, 8, (void *)walk->pc))
		return 1;
	walk->forgettable = 1;
	if (walk->pc < last || bpf_probe_read_user(&walk->code, 8, (void *)last))
		return 0;
	walk->code >>= (walk->pc - last) << 3;
	return 1;
}

/* Go to the caller by what the code is about to do; returns whether that is known. */
INLINE int step_by_tail(struct thread *thread, struct table *table)
{
	struct walk *walk = &thread->walk;
	u64 slot, bp_at, caller = 0, bp = 0, code, restores;
	struct tail tail;

	if (!read_code(walk))
		return 0;
	code = walk->code;
	tail = read_tail(code);
	if (tail.kind == TAIL_NONE)
		return 0;
	slot = walk->sp + tail.size;
	bp_at = walk->sp + tail.bp_at;
	restores = tail.pops_bp;
	if (tail.kind == TAIL_LEAVE) {
		use_bp(thread);
		if (walk->bp < walk->sp)
			return 0;
		slot = walk->bp + 8;
		bp_at = walk->bp;
		restores = 1;
	}
	if (bpf_probe_read_user(&caller, 8, (void *)slot) || (restores && bpf_probe_read_user(&bp, 8, (void *)bp_at)))
		return 0;
	if (!(caller && caller == thread->trampoline) && !follows_call(walk, table, caller)) {
		walk->forgettable = 1;
		return 0;
	}
	note_tail(thread, walk->pc, code);
	note(thread, slot, caller);
	if (restores)
		restore_bp(walk, bp_at, bp);
	walk->sp = slot + 8;
	walk->pc = caller;
	walk->is_caller = 1;
	return 1;
}

#endif
