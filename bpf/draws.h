// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks drawn by a Poisson process over the bytes that are allocated.
 *
 * Plain C apart from random_word(), so that tests/unit/bpf/test_draws.py can run
 * this very code.
 */
#ifndef REFLEAK_DRAWS_H
#define REFLEAK_DRAWS_H

#include "abi.h"
#include "verifier.h"

#define DRAW_STEPS 128 /* 2.7 are needed on average; more than these once in 10^24 */

#ifdef REFLEAK_BPF
#include "maps.bpf.h"

INLINE u64 random_word(void)
{
	return (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}
#endif

struct draws {
	u64 next; /* bytes until a block is drawn, that one's byte included; 0: not yet known */
	u64 whole; /* of the last variate, and its fraction in 2^-64 */
	u64 part;
};

/* A variate that is being drawn. */
struct drawing {
	u64 whole;
	u64 part;
	u64 last; /* number of the run, */
	u64 is_odd; /* and whether it is of odd length */
};

/* a * b / 2^64 for b below 2^32, rounded down. */
INLINE u64 product_high(u64 a, u64 b)
{
	return ((a >> 32) * b + ((a & 0xffffffff) * b >> 32)) >> 32;
}

INLINE void begin_run(struct drawing *drawing)
{
	drawing->part = drawing->last = random_word();
	drawing->is_odd = 1;
}

/* Draw one more number; returns whether the variate is there. */
INLINE int draw_turn(struct drawing *drawing)
{
	u64 number = random_word();

	if (number < drawing->last) {
		drawing->last = number;
		drawing->is_odd ^= 1;
		return 0;
	}
	if (drawing->is_odd)
		return 1;
	drawing->whole++;
	begin_run(drawing);
	return 0;
}

/*
 * An exponential variate of mean 1, by comparisons alone (von Neumann 1951,
 * "Various techniques used in connection with random digits"): a uniform
 * number is accepted as the fraction with the probability exp(-number), which
 * is that of a run of odd length of ever smaller numbers from it on; each
 * refusal, of probability 1/e, adds 1. BPF has neither floating point nor
 * logarithms, and this needs neither, nor a table: it is exact but for numbers
 * that agree in 64 bits.
 */
INLINE void exponential(struct draws *draws)
{
	struct drawing drawing = { 0 };

	begin_run(&drawing);
#ifdef REFLEAK_BPF
	REPEAT(DRAW_STEPS, draw, &drawing);
#else
	for (int i = 0; i < DRAW_STEPS && !draw_turn(&drawing); i++)
		;
#endif
	draws->whole = drawing.whole;
	draws->part = drawing.part;
}

/*
 * Whether a byte of the block is drawn: of probability 1 - exp(-size / mean),
 * and independent of all other blocks, since the exponential distribution has
 * no memory: after a block that was not drawn, what is left of the distance is
 * distributed as the whole was, and after one that was, another is taken. The
 * distance in whole bytes is the variate times `mean`, rounded down, of which
 * the same is true. A block of 0 bytes counts as 1, as it could not be drawn
 * at all. `mean` is below 2^32.
 */
INLINE int is_drawn(struct draws *draws, u64 size, u64 mean)
{
	size += !size;
	if (!draws->next) {
		exponential(draws);
		draws->next = draws->whole * mean + product_high(draws->part, mean) + 1;
	}
	if (draws->next > size) {
		draws->next -= size;
		return 0;
	}
	draws->next = 0;
	return 1;
}

#endif
