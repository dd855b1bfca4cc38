// SPDX-License-Identifier: GPL-2.0
/*
 * Indirect calls: which address one was for, told at the entry of what it led
 * to by jumps.
 *
 * An `operator delete` that jumps to `free` stands on no stack; where the call
 * is direct its code names it. Of a call by a register the address is still
 * there, if it is one that calls preserve: who jumps to another function has
 * given it back. One that calls need not preserve may be another's by now. It
 * is believed if the word that it was loaded from holds the same, to which
 * registers lead that calls preserve.
 *
 * The code before the return address is read backwards, where nothing tells the
 * beginning of an instruction: what was taken for one is kept with the result,
 * and user space, which reads the whole function, has the last word
 * (tracer/symbols/indirect_calls.py).
 */
#ifndef REFLEAK_INDIRECT_CALLS_H
#define REFLEAK_INDIRECT_CALLS_H

#include "abi.h"
#include "maps.bpf.h"
#include "tables.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"
#include "x86_64.h"

/* Go by an instruction that reads register `id`, so many bytes before the return address. */
INLINE void go_by(struct indirect_call *call, u64 id, u64 before)
{
	call->path |= before << (call->loads << 3);
	call->id = id;
	call->is_rooted = is_preserved(id);
	MASK(id, REGISTERS);
	call->root = call->registers[id];
}

/* Find the call, which is the last instruction, and before it what loads the register that is wanted. */
INLINE int find_operand_turn(struct indirect_call *call, u64 index)
{
	u64 before = index + 3, at = CALL_BYTES - before, code, load;
	struct operand operand;

	BARRIER(at);
	if (at >= CALL_BYTES)
		return 1;
	code = *(u64 *)&call->code[at];
	if (!index) {
		operand = read_call_by_register(code);
		if (operand.kind == OPERAND_NONE)
			return 1;
		call->called_by = operand.id;
		go_by(call, operand.id, operand.bytes);
		return call->is_rooted;
	}
	operand = read_load(code, call->id);
	if (operand.kind == OPERAND_NONE)
		return 0;
	load = ++call->loads;
	MASK(load, CALL_LOADS + 1);
	call->displacement[load] = operand.displacement;
	go_by(call, operand.id, before);
	if (operand.kind == OPERAND_WORD_BESIDE) {
		call->root = call->back - before + operand.bytes;
		call->is_rooted = 1;
	}
	return call->is_rooted || load == CALL_LOADS;
}

/* The address that the call was for; 0 if that is not certain. */
INLINE u64 called_address(struct indirect_call *call)
{
	u64 value = call->root, id = call->called_by, failed = 0;

#pragma unroll
	for (int load = CALL_LOADS; load > 0; load--) {
		if (load <= call->loads)
			failed |=
				bpf_probe_read_user(&value, sizeof(value), (void *)(value + call->displacement[load]));
	}
	MASK(id, REGISTERS);
	return failed || value != call->registers[id] ? 0 : value;
}

/*
 * Say which function was called, in the key and in what is seen first, where the call that comes back to the word at
 * `slot` is an indirect one, and that is certain.
 */
INLINE void note_called(struct pt_regs *ctx, struct thread *thread, u64 slot, struct free_site *key,
			struct free_seen *first)
{
	struct indirect_call *call = &thread->indirect_call;
	u64 index = thread->table, called;
	struct mapping *mapping;
	struct table *table;

	call->loads = 0;
	call->path = 0;
	call->is_rooted = 0;
	if (bpf_probe_read_user(&call->back, sizeof(call->back), (void *)slot) ||
	    bpf_probe_read_user(call->code, CALL_BYTES, (void *)(call->back - CALL_BYTES)))
		return;
	read_registers(call->registers, ctx, slot);
	REPEAT(CALL_BYTES - 2, find_operand, &call);
	if (!call->is_rooted)
		return;
	called = called_address(call);
	MASK(index, TABLES);
	table = &VALUE(TABLE_VALUES)->at[index];
	mapping = locate(&thread->walk, table, called);
	if (called < mapping->start || called >= mapping->end)
		return;
	key->called = (u64)mapping->binary << FRAME_BINARY_SHIFT | FRAME_EXACT |
		      ((called - mapping->bias) & (FRAME_EXACT - 1));
	first->path = call->path;
}

#endif
