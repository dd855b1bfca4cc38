// SPDX-License-Identifier: GPL-2.0
/*
 * Mapping tables and unwind rows, and the searches in them.
 *
 * Both binary searches choose by arithmetic, not by branches: with branches
 * the verifier follows every path through every search of every frame, and
 * refuses the program at 16 frames; without, 127 frames fit into one.
 */
#ifndef REFLEAK_TABLES_H
#define REFLEAK_TABLES_H

#include "abi.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define PAGE_BITS 12
#define ROW_RULE_BITS 20

/* The index of the last mapping that starts at or below `address`; 0 where none does. */
INLINE u64 index_below(struct table *table, u64 address)
{
	u64 low = 0;

#pragma unroll
	for (int step = TABLE_MAPPINGS / 2; step > 0; step >>= 1) {
		u64 candidate = low + step;

		MASK(candidate, TABLE_MAPPINGS);
		low += step & -at_least(address, table->mappings[candidate].start);
		MASK(low, TABLE_MAPPINGS);
	}
	return low;
}

/* The mapping whose start is the last at or below `address`; the caller checks its end. */
INLINE struct mapping *locate(struct walk *walk, struct table *table, u64 address)
{
	u64 last = walk->last;
	struct mapping *mapping;

	MASK(last, TABLE_MAPPINGS);
	mapping = &table->mappings[last];
	if (address >= mapping->start && address < mapping->end)
		return mapping;
	last = index_below(table, address);
	walk->last = last;
	MASK(last, TABLE_MAPPINGS);
	return &table->mappings[last];
}

INLINE struct rule *rule_at(struct mapping *mapping, u64 link_address)
{
	u64 page = (u32)((link_address >> PAGE_BITS) - mapping->first_link_page);
	u64 low, length, index;

	if (page >= mapping->page_count)
		return 0;
	index = mapping->first_page + page;
	MASK(index, ENTRIES(PAGES));
	low = VALUE(PAGES)->at[index];
	index++;
	MASK(index, ENTRIES(PAGES));
	length = VALUE(PAGES)->at[index] - low;
#pragma unroll
	for (int step = 0; step < PAGE_BITS; step++) {
		u64 half = length >> 1;
		u64 middle = low + half;

		MASK(middle, ENTRIES(ROWS));
		low += half &
		       -at_least(link_address & ((1 << PAGE_BITS) - 1), VALUE(ROWS)->at[middle] >> ROW_RULE_BITS);
		length -= half;
	}
	MASK(low, ENTRIES(ROWS));
	index = VALUE(ROWS)->at[low];
	MASK(index, RULES);
	return &VALUE(RULES)->at[index];
}

#endif
