// SPDX-License-Identifier: GPL-2.0
/*
 * The distance to the next draw of a Poisson process over bytes.
 *
 * Plain C apart from random_word(), so that tests/unit/test_draws.py can run
 * this very code.
 */
#ifndef REFLEAK_DRAWS_H
#define REFLEAK_DRAWS_H

#define DRAW_STEPS 128	/* 2.7 are needed on average; more than these once in 10^24 */

#ifdef REFLEAK_BPF
INLINE u64 random_word(void)
{
	return (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}
#endif

struct draw {
	u64 whole;
	u64 part;	/* in 2^-64 */
};

/* a * b / 2^64 for b below 2^32, rounded down. */
INLINE u64 product_high(u64 a, u64 b)
{
	return ((a >> 32) * b + ((a & 0xffffffff) * b >> 32)) >> 32;
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
INLINE void exponential(struct draw *draw)
{
	u64 last = random_word();
	u64 is_odd = 1;

	draw->whole = 0;
	draw->part = last;
#pragma unroll 1
	for (int i = 0; i < DRAW_STEPS; i++) {
		u64 number = random_word();

		if (number < last) {
			last = number;
			is_odd ^= 1;
			continue;
		}
		if (is_odd)
			break;
		draw->whole++;
		draw->part = last = random_word();
		is_odd = 1;
	}
}

/* Bytes from here to the next that is drawn, itself included; `mean` is below 2^32. */
INLINE u64 bytes_to_draw(struct draw *draw, u64 mean)
{
	exponential(draw);
	return draw->whole * mean + product_high(draw->part, mean) + 1;
}

#endif
