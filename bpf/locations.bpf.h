// SPDX-License-Identifier: GPL-2.0
/* Values where a site says they are. */
#ifndef REFLEAK_LOCATIONS_H
#define REFLEAK_LOCATIONS_H

#include "abi.h"
#include "maps.bpf.h"
#include "x86_64.h"
#include "verifier.h"

INLINE u64 value_at(struct pt_regs *ctx, const u64 *registers, const struct location *at)
{
	u64 value = 0;
	u8 kind = at->kind;

	if (kind == AT_REGISTER) {
		u64 number = at->reg;

		/* The mask must be the last thing before the load, or clang drops it. */
		asm volatile("%0 &= 15" : "+r"(number));
		value = registers[number];
	} else if (kind == AT_STACK) {
		if (bpf_probe_read_user(&value, sizeof(value), (void *)(STACK_POINTER(ctx) + (s64)at->offset)))
			lose(LOSS_ARGUMENT_UNREAD);
	} else if (kind == AT_RETURN) {
		value = RETURN_VALUE(ctx);
	} else if (kind == AT_CONSTANT) {
		value = (s64)at->offset;
	} else if (kind == AT_CODE) {
		value = PROGRAM_COUNTER(ctx) + (s64)at->offset;
	} else {
		return 0;
	}
	if (at->width == 4)
		value = (s64)(s32)value;
	value += (s64)at->adjust;
	if (at->dereference) {
		u64 pointer = value;

		value = 0;
		if (bpf_probe_read_user(&value, sizeof(value), (void *)pointer))
			lose(LOSS_ARGUMENT_UNREAD);
		if (at->dereference == 2)
			value = (s64)(s32)value;
	}
	return value;
}

#endif
