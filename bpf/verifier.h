// SPDX-License-Identifier: GPL-2.0
/*
 * How values are written so that the kernel's verifier follows them: bounds
 * that it sees, and choices by arithmetic, which are one path and not two.
 *
 * The host compiles what includes this too: only MASK is BPF's alone.
 */
#ifndef REFLEAK_VERIFIER_H
#define REFLEAK_VERIFIER_H

#include "abi.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define INLINE static __always_inline

/* Hide a value from the optimiser: the verifier must see the check that the C code shows. */
#define BARRIER(x) __asm__ volatile("" : "+r"(x))

/* An index that the verifier sees to be below a power of two. */
#define MASK(x, size) asm volatile("%0 &= %1" : "+r"(x) : "i"((size)-1))

/* Have what stands before be done before what stands behind, as the CPU does it with stores and with loads. */
#define KEEP_ORDER() asm volatile("" : : : "memory")

/* 1 if a word is not 0, else 0. */
INLINE u64 is_any(u64 bits)
{
	BARRIER(bits);
	bits |= -bits;
	BARRIER(bits);
	return bits >> 63;
}

/* One of two values; `mask` is all ones for the first, else 0. */
INLINE u64 either(u64 mask, u64 first, u64 second)
{
	return second ^ ((first ^ second) & mask);
}

/* 1 if a >= b, else 0; for values below 2^63. */
INLINE u64 at_least(u64 a, u64 b)
{
	u64 difference;

	BARRIER(a);
	BARRIER(b);
	difference = a - b;
	BARRIER(difference);
	difference >>= 63;
	BARRIER(difference);
	return difference ^ 1;
}

/* 1 if a == b, else 0; for values below 2^63. */
INLINE u64 is_equal(u64 a, u64 b)
{
	u64 difference = a ^ b;

	BARRIER(difference);
	difference -= 1;
	BARRIER(difference);
	difference >>= 63;
	BARRIER(difference);
	return difference;
}

#endif
