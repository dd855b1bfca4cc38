// SPDX-License-Identifier: GPL-2.0
/*
 * What 8 bytes of x86-64 code do, the first in the low byte.
 *
 * Plain C, so that tests/unit/bpf/test_epilogue.py can compile and try the very
 * code that the kernel runs. Decoded by arithmetic, not by branches: see
 * tables.bpf.h.
 */
#ifndef REFLEAK_EPILOGUE_H
#define REFLEAK_EPILOGUE_H

#include "abi.h"
#include "verifier.h"

#define EPILOGUE_POPS 6

enum epilogue_kind {
	EPILOGUE_NONE,
	EPILOGUE_RSP, /* the return address is `size` bytes above rsp */
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

#endif
