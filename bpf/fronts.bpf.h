// SPDX-License-Identifier: GPL-2.0
/*
 * Fronts of hash maps: arrays in which the most is found. The kernel compiles
 * the look-up in an array into the program; one in a hash map is a call, a hash
 * and a walk, and to add and to delete takes a lock as well.
 *
 * What has no room in its place of a front goes to the map behind, and what a
 * place never had to send there is not looked for there.
 */
#ifndef REFLEAK_FRONTS_H
#define REFLEAK_FRONTS_H

#include "abi.h"
#include "maps.bpf.h"
#include "verifier.h"

/* All of a key but the address, as it lies in memory. */
INLINE u64 owner_of(struct key *key)
{
	return (u64)key->group << 48 | (u64)key->generation << 32 | key->pid;
}

/*
 * The number of a block's set, of a power of two. What was allocated next to each
 * other is in sets next to each other: these are in the caches, and so is their
 * page's entry in the TLB, which in a virtual machine costs most. Regions of two
 * megabytes begin anywhere, so that sets fill as by chance: a block takes 32 bytes
 * at least.
 */
INLINE u32 set_of_block(struct key *key, u64 sets)
{
	u64 region = ((key->address >> 21) ^ ((u64)key->pid << 32)) * 0x9e3779b97f4a7c15ULL;

	return ((key->address >> 5) + (region >> 40)) & (sets - 1);
}

INLINE struct block_set *block_set_of(struct key *key)
{
	u64 sets = CONSTANTS->block_sets;
	u32 index = set_of_block(key, sets);

	return sets && key->address ? map_lookup(LIVE_FRONT, &index) : 0;
}

/* Where in a set the block of a key is; BLOCK_WAYS: nowhere. */
INLINE u64 way_of_block(struct block_set *set, struct key *key)
{
	u64 owner = owner_of(key), at = BLOCK_WAYS;

#pragma unroll
	for (u64 i = 0; i < BLOCK_WAYS; i++) {
		u64 is_it = is_any((set->address[i] ^ key->address) | (set->owner[i] ^ owner)) - 1;

		at ^= (at ^ i) & is_it;
	}
	return at;
}

/* Where in a set there is room; BLOCK_WAYS: nowhere. */
INLINE u64 way_for_block(struct block_set *set)
{
	u64 at = BLOCK_WAYS;

#pragma unroll
	for (u64 i = 0; i < BLOCK_WAYS; i++)
		at ^= (at ^ i) & (is_any(set->is_taken[i]) - 1);
	return at;
}

/* Take the block of a key from its place in a set; returns whether no other CPU was faster. */
INLINE int take_from_front(struct block_set *set, u64 at, u64 address)
{
	u64 was = exchange(&set->address[at], 0);

	if (was == address) {
		set->is_taken[at] = 0;
		return 1;
	}
	if (was)
		set->address[at] = was;
	return 0;
}

/* Copy what is known of a live block, which this `removes` or not. A copy, since each kind of pointer is a path to verify. */
INLINE int copy_block(struct key *key, struct allocation *copy, int removes)
{
	struct block_set *set = block_set_of(key);
	struct allocation *block;
	u64 at;

	if (set) {
		at = way_of_block(set, key);
		if (at < BLOCK_WAYS) {
			MASK(at, BLOCK_WAYS);
			*copy = set->block[at]; /* before it goes: another CPU may use the place */
			return !removes || take_from_front(set, at, key->address);
		}
		if (!set->is_spilled)
			return 0;
	}
	block = map_lookup(LIVE, key);
	if (!block)
		return 0;
	*copy = *block;
	if (removes)
		map_delete(LIVE, key);
	return 1;
}

/* Returns whether a live block is known, with what is known of it. */
INLINE int read_block(struct key *key, struct allocation *copy)
{
	return copy_block(key, copy, 0);
}

/* Remove a live block; returns whether it was known, with what was known of it. */
INLINE int remove_block(struct key *key, struct allocation *removed)
{
	return copy_block(key, removed, 1);
}

/* Where in a set a block is to be: its own place, if no free of one with its key was seen; BLOCK_WAYS: there is no room. */
INLINE u64 place_for_block(struct block_set *set, struct key *key)
{
	u64 at = way_of_block(set, key);

	if (at < BLOCK_WAYS)
		return at;
	at = way_for_block(set);
	if (at >= BLOCK_WAYS)
		return at;
	MASK(at, BLOCK_WAYS);
	return exchange(&set->is_taken[at], 1) ? BLOCK_WAYS : at; /* or another CPU was faster */
}

/* Keep a block in the front; returns whether there was room. */
INLINE int add_to_front(struct key *key, struct allocation *block)
{
	struct block_set *set = block_set_of(key);
	u64 at;

	if (!set)
		return 0;
	at = place_for_block(set, key);
	if (at >= BLOCK_WAYS) {
		set->is_spilled = 1;
		return 0;
	}
	MASK(at, BLOCK_WAYS);
	set->owner[at] = owner_of(key);
	set->block[at] = *block;
	KEEP_ORDER();
	set->address[at] = key->address;
	if (set->is_spilled)
		map_delete(LIVE, key); /* one of which no free was seen */
	return 1;
}

#endif
