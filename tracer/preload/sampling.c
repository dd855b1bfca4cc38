/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which blocks come to a probe, with --sample-bytes: those that are drawn, by the
 * draw of the kernel side (bpf/draws.h), and whether one that is freed was.
 */
#include <stdint.h>

static uint64_t random_word(void);
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "draws.h"

#define HIDDEN __attribute__((__visibility__("hidden")))
#define IS_LOCAL __thread __attribute__((__tls_model__("initial-exec")))
#define BUCKETS 65536
#define WAYS 8
#define FULL 255

/* Bytes until the thread's next drawn one, that included. */
IS_LOCAL int64_t refleak_countdown HIDDEN;
static IS_LOCAL int has_begun;
static IS_LOCAL uint64_t state;

/*
 * What is drawn and alive, by a hash of the address, and how many of each hash: a
 * free that finds 0 there looks no further. Where a bucket is full, all frees of
 * its hash come to a probe from then on, and the kernel side knows better.
 */
uint8_t refleak_filter[BUCKETS] HIDDEN;
static uint8_t overflowed[BUCKETS];
static uint64_t table[BUCKETS][WAYS] __attribute__((__aligned__(64)));

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t random_word(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Forked children have their maker's state: the clock tells them apart. */
static int64_t distance(void)
{
	struct draws draws;

	state += __builtin_ia32_rdtsc();
	exponential(&draws);
	return draws.whole * REFLEAK_SAMPLE_BYTES + product_high(draws.part, REFLEAK_SAMPLE_BYTES) + 1;
}

/* As wrappers.S computes it. */
static uint64_t hash_of(uint64_t address)
{
	uint64_t shifted = address >> 4;

	return (uint16_t)(shifted ^ shifted >> 16);
}

static void count(uint64_t hash, int by)
{
	uint8_t old = __atomic_load_n(&refleak_filter[hash], __ATOMIC_RELAXED);

	while (old != FULL &&
	       !__atomic_compare_exchange_n(&refleak_filter[hash], &old, old + by, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Keep a block that is drawn, before anybody but its maker knows of it. */
HIDDEN void refleak_put(uint64_t block)
{
	uint64_t hash = hash_of(block);

	count(hash, 1);
	for (int i = 0; i < WAYS; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&table[hash][i], &none, block, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	overflowed[hash] = 1; /* its count stays, too */
}

/* Whether a block was drawn, or may have been; it is kept no longer. */
HIDDEN int refleak_take(uint64_t block)
{
	uint64_t hash = hash_of(block);

	if (!block)
		return 0;
	for (int i = 0; i < WAYS; i++) {
		uint64_t one = block;

		if (__atomic_compare_exchange_n(&table[hash][i], &one, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			count(hash, -1);
			return 1;
		}
	}
	return overflowed[hash];
}

/* Whether a block is drawn with which the countdown has come to its end; one that could not be made is not counted. */
HIDDEN int refleak_draw(uint64_t block, uint64_t size)
{
	int64_t counted = size ? size : 1;

	if (!block) {
		refleak_countdown += counted;
		return 0;
	}
	if (!has_begun) {
		has_begun = 1;
		state = (uint64_t)&state ^ block << 32;
		refleak_countdown += distance();
		if (refleak_countdown > 0)
			return 0;
	}
	refleak_countdown = distance();
	refleak_put(block);
	return 1;
}
