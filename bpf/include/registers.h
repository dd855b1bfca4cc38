// SPDX-License-Identifier: GPL-2.0
/* All that depends on the architecture: x86-64. */
#ifndef REFLEAK_REGISTERS_H
#define REFLEAK_REGISTERS_H

#include <uapi/linux/ptrace.h>

#define RETURN_VALUE(ctx) ((ctx)->ax)

/* The registers by DWARF number (enum register_id). Each is loaded at a constant offset: the verifier wants that of a context. */
#define READ_REGISTERS(array, ctx)                                                                 \
	u64 array[16] = {                                                                          \
		(ctx)->ax, (ctx)->dx, (ctx)->cx, (ctx)->bx, (ctx)->si, (ctx)->di, (ctx)->bp,       \
		(ctx)->sp, (ctx)->r8, (ctx)->r9, (ctx)->r10, (ctx)->r11, (ctx)->r12, (ctx)->r13,   \
		(ctx)->r14, (ctx)->r15,                                                            \
	}

#endif
