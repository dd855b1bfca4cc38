// SPDX-License-Identifier: GPL-2.0
/*
 * Callers of code that has no unwind table and keeps no frame pointer, such as
 * the trampolines of `python3 -X perf`: where the code at the return address
 * runs straight to its `ret`, it says itself where its own return address is.
 */
#ifndef REFLEAK_EPILOGUE_BPF_H
#define REFLEAK_EPILOGUE_BPF_H

#include "abi.h"
#include "x86_64.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "walk_cache.bpf.h"

/*
 * Whether a call stands before an address. What follows the call of a function
 * that never returns is not what will run: there the epilogue would be another's.
 * A forked child may not have the page yet: then it must be known code.
 */
INLINE int follows_call(struct walk *walk, struct table *table, u64 address)
{
	struct mapping *mapping = locate(walk, table, address - 1);

	if (bpf_probe_read_user(&walk->code, 8, (void *)(address - 8)))
		return address > mapping->start && address <= mapping->end;
	return ends_with_call(walk->code);
}

/* Read the code at walk->pc, with zeros for what is behind the end of memory; returns whether there is any. */
INLINE int read_code(struct walk *walk)
{
	u64 last = (walk->pc | (PAGE_BYTES - 1)) - 7;

	if (!bpf_probe_read_user(&walk->code, 8, (void *)walk->pc))
		return 1;
	walk->forgettable = 1;
	if (walk->pc < last || bpf_probe_read_user(&walk->code, 8, (void *)last))
		return 0;
	walk->code >>= (walk->pc - last) << 3;
	return 1;
}

/* Go to the caller by what the code is about to do; returns whether that is known. */
INLINE int step_by_epilogue(struct thread *thread, struct step *step, struct table *table)
{
	struct walk *walk = &thread->walk;
	u64 slot, bp_at, caller = 0, bp = 0, code, restores;
	struct epilogue epilogue;

	if (!read_code(walk))
		return 0;
	code = walk->code;
	epilogue = read_epilogue(code);
	if (epilogue.kind == EPILOGUE_NONE)
		return 0;
	slot = walk->sp + epilogue.size;
	bp_at = walk->sp + epilogue.bp_at;
	restores = epilogue.pops_bp;
	if (epilogue.kind == EPILOGUE_LEAVE) {
		step->flags |= STEP_USED_BP;
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
	note_code(thread, walk->pc, code);
	if (restores)
		restore_bp(walk, step, bp_at, bp);
	walk->sp = slot + 8;
	walk->pc = caller;
	walk->is_caller = 1;
	return 1;
}

#endif
