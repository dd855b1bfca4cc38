// SPDX-License-Identifier: GPL-2.0
/*
 * The maps and the one-line functions on them.
 *
 * All maps are made by Python with bpf(2), and reach this code as file
 * descriptors in -D macros: bpf_pseudo_fd(1, fd) is a map for a helper,
 * bpf_pseudo_fd(2, fd) the address of the value of an array of one element.
 * BCC's own map declarations would be rewritten by its front end, which works
 * in the main file only and grows with the size of the value.
 */
#ifndef REFLEAK_MAPS_H
#define REFLEAK_MAPS_H

#include "abi.h"
#include "map_table.bpf.h"
#include "verifier.h"

#define MAP(name) ((void *)bpf_pseudo_fd(1, FD_##name))
#define VALUE(name) ((value_of_##name *)bpf_pseudo_fd(2, FD_##name))
/* What a new entry of a map begins with. */
#define BLANK(name) ((value_of_##name *)bpf_pseudo_fd(2, FD_ZEROS))

#define ENTRIES(name) (sizeof(((value_of_##name *)0)->at) / sizeof(((value_of_##name *)0)->at[0]))

#define SITES VALUE(SITES)
#define SHARED ((volatile value_of_SHARED *)VALUE(SHARED))
#define CONSTANTS VALUE(CONSTANTS)

enum { ANY, NOEXIST, EXIST };
enum { NO_ROOM = -7 }; /* -E2BIG: what an update returns where a map is full */
enum { WAKE_NEVER = 1, WAKE_NOW = 2 }; /* BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP */

static long (*const tail_call)(void *ctx, void *programs, u32 index) = (void *)12;

static long (*const bpf_loop_of)(u32 turns, void *turn, void *context, u64 flags) = (void *)181;

/*
 * What a loop's turn is called with, by bpf_loop: a structure, since BCC
 * rewrites functions of more than one parameter. It comes in registers as they
 * would. A turn returns whether it was the last one.
 */
struct turn {
	u64 index;
	void *context;
};

/*
 * Run a turn of turns.bpf.c at most `turns` times; returns how often it was
 * run. The verifier follows it once or twice, a loop in C as often as it turns.
 * The mark is replaced by the turn's address when the program is linked.
 */
#define REPEAT(turns, name, context) bpf_loop_of(turns, (void *)TURN_##name, context, 0)

INLINE void *lookup_map(void *map, const void *key)
{
	return bpf_map_lookup_elem(map, (void *)key);
}

INLINE long update_map(void *map, const void *key, const void *value, u64 flags)
{
	return bpf_map_update_elem(map, (void *)key, (void *)value, flags);
}

INLINE long delete_map(void *map, const void *key)
{
	return bpf_map_delete_elem(map, (void *)key);
}

/* A pointer as it is, refused by the compiler where it points to something else than the map's keys or values. */
#define KEY_OF(name, key) (1 ? (key) : (const key_of_##name *)0)
#define VALUE_OF(name, value) (1 ? (value) : (const value_of_##name *)0)

#define map_lookup(name, key) ((value_of_##name *)lookup_map(MAP(name), KEY_OF(name, key)))
#define map_update(name, key, value, flags) update_map(MAP(name), KEY_OF(name, key), VALUE_OF(name, value), flags)
#define map_delete(name, key) delete_map(MAP(name), KEY_OF(name, key))

INLINE void lose(u32 reason)
{
	u64 *count = map_lookup(LOSSES, &reason);

	if (count)
		*count += 1;
}

/* Count something, where that is wanted. */
INLINE void tally(u32 index, u64 number)
{
	u64 *count;

	if (!CONSTANTS->counts)
		return;
	count = map_lookup(COUNTS, &index);
	if (count)
		__sync_fetch_and_add(count, number);
}

INLINE u64 mixed(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* What a hash becomes to be an id: never 0, which is "none". */
INLINE u64 id_of_hash(u64 hash)
{
	hash *= 0xff51afd7ed558ccdULL;
	hash ^= hash >> 32;
	return hash | (hash == 0);
}

INLINE void add(u64 *sum, u64 value)
{
	__sync_fetch_and_add(sum, value);
}

/*
 * Put a value in a place; returns what was there. It is compiled as an addition
 * with a mark, which the linker replaces (tracer/kernel/linking.py): BCC's clang
 * compiles for the first version of BPF, which had no such instruction.
 */
INLINE u64 exchange(u64 *place, u64 value)
{
	asm volatile("lock *(u64 *)(%1 + 32497) += %0" : "+r"(value) : "r"(place) : "memory");
	return value;
}

#endif
