// SPDX-License-Identifier: GPL-2.0
/*
 * All that depends on the architecture: registers and where they are, numbers of
 * system calls, the signal frame, and what code does. No other file names a
 * register or an instruction; tests/unit/bpf/test_architecture.py looks.
 *
 * Plain C but for what reads a context, so that tests/unit/bpf/test_epilogue.py
 * can compile and try the very code that the kernel runs.
 */
#ifndef REFLEAK_X86_64_H
#define REFLEAK_X86_64_H

#include "abi.h"
#include "verifier.h"

/* DWARF's numbering of the registers. */
enum register_id {
	REG_RAX,
	REG_RDX,
	REG_RCX,
	REG_RBX,
	REG_RSI,
	REG_RDI,
	REG_RBP,
	REG_RSP,
	REG_R8,
	REG_R9,
	REG_R10,
	REG_R11,
	REG_R12,
	REG_R13,
	REG_R14,
	REG_R15,
};

#define STACK_POINTER_ID REG_RSP

#define NR_MMAP 9
#define NR_MPROTECT 10
#define NR_MUNMAP 11
#define NR_MREMAP 25

/* The ucontext that the kernel pushes for a signal handler: gregs of struct sigcontext, r8 first. */
#define SIGNAL_REGISTERS_AT 40 /* bytes above rsp in the handler's restorer */
#define SIGNAL_REGISTERS 17
#define SIGNAL_FRAME_POINTER 10
#define SIGNAL_STACK_POINTER 15
#define SIGNAL_PROGRAM_COUNTER 16

#ifdef REFLEAK_BPF
#include <uapi/linux/ptrace.h>

#define PROGRAM_COUNTER(ctx) ((ctx)->ip)
#define STACK_POINTER(ctx) ((ctx)->sp)
#define FRAME_POINTER(ctx) ((ctx)->bp)
#define RETURN_VALUE(ctx) ((ctx)->ax)
#define FIRST_ARGUMENT(ctx) ((ctx)->di)
#define SECOND_ARGUMENT(ctx) ((ctx)->si)
#define THIRD_ARGUMENT(ctx) ((ctx)->dx)

/* Of a function; the first three also of a system call. */
#define FIRST_ARGUMENT(ctx) ((ctx)->di)
#define SECOND_ARGUMENT(ctx) ((ctx)->si)
#define THIRD_ARGUMENT(ctx) ((ctx)->dx)
#define FOURTH_OF_SYSTEM_CALL(ctx) ((ctx)->r10)

/* The registers by DWARF number. Each is loaded at a constant offset: the verifier wants that of a context. */
#define READ_REGISTERS(array, ctx) \
	u64 array[REGISTERS] = { \
		(ctx)->ax, (ctx)->dx, (ctx)->cx,  (ctx)->bx,  (ctx)->si,  (ctx)->di,  (ctx)->bp,  (ctx)->sp, \
		(ctx)->r8, (ctx)->r9, (ctx)->r10, (ctx)->r11, (ctx)->r12, (ctx)->r13, (ctx)->r14, (ctx)->r15, \
	}

/* Those that calls preserve; the others stay as they are. */
INLINE void read_preserved(u64 *registers, struct pt_regs *ctx)
{
	registers[REG_RSP] = ctx->sp;
	registers[REG_RBP] = ctx->bp;
	registers[REG_RBX] = ctx->bx;
	registers[REG_R12] = ctx->r12;
	registers[REG_R13] = ctx->r13;
	registers[REG_R14] = ctx->r14;
	registers[REG_R15] = ctx->r15;
}

/* All of them; the stack pointer as it was before the call whose return address is at `slot`. */
INLINE void read_registers(u64 *registers, struct pt_regs *ctx, u64 slot)
{
	registers[REG_RAX] = ctx->ax;
	registers[REG_RDX] = ctx->dx;
	registers[REG_RCX] = ctx->cx;
	registers[REG_RSI] = ctx->si;
	registers[REG_RDI] = ctx->di;
	registers[REG_R8] = ctx->r8;
	registers[REG_R9] = ctx->r9;
	registers[REG_R10] = ctx->r10;
	registers[REG_R11] = ctx->r11;
	read_preserved(registers, ctx);
	registers[REG_RSP] = slot + 8;
}
#endif

#define EPILOGUE_POPS 6

enum epilogue_kind {
	EPILOGUE_NONE,
	EPILOGUE_STACK_POINTER, /* the return address is `size` bytes above rsp */
	EPILOGUE_LEAVE, /* and here above where rbp points */
};

struct epilogue {
	u64 kind;
	u64 size;
	u64 pops_bp;
	u64 bp_at; /* from rsp */
};

/* What 8 bytes of code do: [add $size, %rsp] [pop ...] [leave] ret. */
INLINE struct epilogue read_epilogue(u64 code)
{
	u64 adds = is_equal(code & 0x80ffffff, 0xc48348);
	u64 size = (code >> 24 & 0x7f) & -adds;
	u64 pops_bp = 0, bp_at = 0, is_strange = 0, leaves, returns;

	code >>= adds << 5;
#pragma unroll
	for (int i = 0; i < EPILOGUE_POPS; i++) {
		u64 is_wide = is_equal(code & 0xff, 0x41);
		u64 pops, is_bp;

		code >>= is_wide << 3;
		pops = is_equal(code & 0xf8, 0x58) & (is_wide | (is_equal(code & 0xff, 0x5c) ^ 1)); /* not rsp */
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
	return (struct epilogue){
		.kind = returns + (returns & leaves), .size = size, .pops_bp = pops_bp, .bp_at = bp_at
	};
}

/* Whether the last of the bytes may be those of a call. */
INLINE u64 ends_with_call(u64 code)
{
	u64 calls = is_equal(code >> 24 & 0xff, 0xe8); /* call rel32 */

#pragma unroll
	for (int at = 1; at <= 6; at++) /* ff /2, of 2 to 7 bytes */
		calls |= is_equal(code >> (at << 3) & 0x38ff, 0x10ff);
	return calls;
}

/* Whether a call leaves the register as it was. */
INLINE u64 is_preserved(u64 id)
{
	return (1ULL << REG_RBX | 1ULL << REG_RBP | 1ULL << REG_RSP | 0xfULL << REG_R12) >> (id & 15) & 1;
}

enum operand_kind { OPERAND_NONE, OPERAND_REGISTER, OPERAND_WORD, OPERAND_WORD_BESIDE };

/* A register; the word at a register plus `displacement`, or at the end of the instruction plus that. */
struct operand {
	u64 kind;
	u64 id;
	s64 displacement;
	u64 bytes; /* of the instruction */
};

/* A register's id by the three bits and the one that an instruction has for it. */
INLINE u64 decoded_register(u64 low, u64 high)
{
	return high & 1 ? low | 8 : 0x54673120 >> (low << 2) & 15;
}

/* The operand whose ModRM is the first of the bytes; `high`: the REX.B bit. Those with an index are none. */
INLINE struct operand read_operand(u64 code, u64 high)
{
	u64 mode = code >> 6 & 3, low = code & 7;
	struct operand operand = { .kind = OPERAND_WORD, .id = decoded_register(low, high), .bytes = 1 };

	if (mode == 3) {
		operand.kind = OPERAND_REGISTER;
		return operand;
	}
	code >>= 8;
	if (low == 4) {
		if ((code & 0xff) != 0x24)
			operand.kind = OPERAND_NONE;
		code >>= 8;
		operand.bytes = 2;
	}
	if (mode == 0 && low == 5)
		operand.kind = OPERAND_WORD_BESIDE;
	if (mode == 1) {
		operand.displacement = (s64)(s8)code;
		operand.bytes += 1;
	} else if (mode == 2 || operand.kind == OPERAND_WORD_BESIDE) {
		operand.displacement = (s64)(s32)code;
		operand.bytes += 4;
	}
	return operand;
}

/* What the call goes by that the first three bytes end with: ff /2, after 41 for the upper registers. */
INLINE struct operand read_call_by_register(u64 code)
{
	u64 high = (code & 0xff) == 0x41;
	struct operand operand = read_operand(code >> 16, high);

	if ((code >> 8 & 0xf8ff) != 0xd0ff)
		operand.kind = OPERAND_NONE;
	operand.bytes = 2 + high;
	return operand;
}

/* Where the first of these instructions loads a whole register from, if it does so with register `id`. */
INLINE struct operand read_load(u64 code, u64 id)
{
	struct operand operand = read_operand(code >> 16, code);

	if ((code & 0xfffa) != 0x8b48 || operand.kind == OPERAND_REGISTER ||
	    decoded_register(code >> 19 & 7, code >> 2) != id)
		operand.kind = OPERAND_NONE;
	operand.bytes += 2;
	return operand;
}

#endif
