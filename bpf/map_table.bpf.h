// SPDX-License-Identifier: GPL-2.0
/*
 * The maps: kind, types of key and value, and how many entries.
 *
 * Python makes them with bpf(2), and reads this file for it:
 * tracer/kernel/map_table.py. Words in capitals at the end of a line are
 * limits, most of them options. What is not in abi.h belongs to the kernel
 * side alone and has room here, which Python has to know.
 */
#ifndef REFLEAK_MAP_TABLE_H
#define REFLEAK_MAP_TABLE_H

#include "abi.h"

#define DECLARE_MAP(name, kind, key, value, entries) \
	typedef key key_of_##name; \
	typedef value value_of_##name
#define DECLARE_RING(name, bytes)
#define DECLARE_VALUE(name, type) typedef type value_of_##name
#define DECLARE_ARRAY(name, type, count) \
	typedef struct { \
		type at[count]; \
	} value_of_##name
#define ROOM(type, bytes) enum { ROOM_OF_##type = bytes }

struct thread;
struct cached_walk;
struct calls;
struct interpreter;
struct true_return;

ROOM(thread, 56000);
ROOM(cached_walk, 4352);
ROOM(calls, 3328);
ROOM(interpreter, 38656);
ROOM(true_return, 16);

/* Told before the programs are loaded, and fixed: the verifier drops what they turn off. */
DECLARE_MAP(CONSTANTS, FROZEN_ARRAY, u32, struct constants, 1);

/* What did not fit, by enum loss; and what was done, by enum count. */
DECLARE_MAP(LOSSES, PERCPU_ARRAY, u32, u64, LOSS_COUNT);
DECLARE_MAP(COUNTS, PERCPU_ARRAY, u32, u64, COUNT_SLOTS);

/* Live blocks and counted objects, by address; where blocks are looked for first. */
DECLARE_MAP(LIVE, HASH, struct key, struct allocation, BLOCKS);
DECLARE_MAP(LIVE_FRONT, SHARED_ARRAY, u32, struct block_set, BLOCK_SETS);
DECLARE_MAP(OBJECTS, HASH, struct key, struct object, OBJECTS);

/* Blocks that their maker freed after a fork: a child may still hold its copy. */
DECLARE_MAP(GHOSTS, HASH, struct key, struct ghost, OBJECTS);
DECLARE_MAP(OLDER_GHOSTS, HASH, struct ghost_key, struct ghost, INHERITED_FREES);

/* Frees, by children, of blocks from before their fork: the time. */
DECLARE_MAP(INHERITED_FREES, HASH, struct key, u64, INHERITED_FREES);

/* Blocks that were freed lately, and objects whose count came to 0. */
DECLARE_MAP(FREED, ARRAY, u32, struct freed_set, FREED_SETS);
DECLARE_MAP(RELEASED, LRU_HASH, struct key, struct released, 65536);

/* Objects that other counters belong to. */
DECLARE_MAP(BY_OBJECT, HASH, struct key, struct counters, OBJECTS);

/* Counted objects, by a hash of the address, and their counters: what words of blocks that are freed are compared with. */
DECLARE_ARRAY(COUNTED_AT, u64, 16384);
DECLARE_ARRAY(COUNTER_OF, u64, 16384);

/* By the stack of a birth: how many blocks were looked at and held none, up to HOLDS_NONE; or from HOLDS_SOME on, some. */
DECLARE_ARRAY(HOLDER_MAKERS, u32, 4096);

/* Sums by the id of a stack, and by the place that frees together with the stack that made. */
DECLARE_MAP(STACKS, HASH, u64, struct stack_totals, STACKS);
DECLARE_MAP(FREE_SITES, HASH, struct free_site, struct free_seen, STACKS);

/* Names that the target itself gives to types, by id; and handles of these, by what the call returned. */
DECLARE_MAP(TYPES, HASH, u64, struct type_name, 65536);
DECLARE_MAP(HANDLES, HASH, struct key, u64, 65536);

/* Threads, with what they are inside of; described calls, and states of interpreters, of those that have some. */
DECLARE_MAP(THREADS, HASH, u32, struct thread, THREADS);
DECLARE_MAP(CALLS, HASH, u32, struct calls, THREADS);
DECLARE_MAP(INTERPRETERS, HASH, u32, struct interpreter, THREADS);

/* Walks that threads remember (CACHED_WALKS). */
DECLARE_MAP(WALKS, ARRAY, u32, struct cached_walk, 2048);

/* Words of stacks that the tracer is to write, and true return addresses by their place on the stack. */
DECLARE_RING(STACK_REQUESTS, 65536);
DECLARE_MAP(STACK_WORDS, HASH, u32, struct stack_words, THREADS);
DECLARE_MAP(TRUE_RETURNS, LRU_HASH, struct true_return, u64, 16384);

/* Code objects of interpreters that the tracer was told of; what tells those of CPython apart that live. */
DECLARE_MAP(INTERPRETER_CODES, HASH, u64, u64, 262144);
DECLARE_MAP(PYTHON_CODES, LRU_HASH, struct key, u64, 65536);

/* Traced processes and what each address space has made; which table of mappings an address space has. */
DECLARE_MAP(PROCESSES, HASH, u32, struct process, PROCESSES);
DECLARE_MAP(SPACE_TOTALS, HASH, struct key, struct space_totals, PROCESSES);
DECLARE_MAP(TABLE_OF, HASH, u32, u32, PROCESSES);

/* Processes that have events in place of links, by pid: their links are being closed. */
DECLARE_MAP(BY_EVENTS, HASH, u32, u32, PROCESSES);

/* Threads that are held, and code that was mapped and told of. */
DECLARE_MAP(HOLDS, HASH, u32, struct hold, HOLD_SLOTS);
DECLARE_MAP(CODE_SEEN, LRU_HASH, struct key, u64, 16384);

/* To the tracer: events, stacks, frames of scripts, whom to wait for. */
DECLARE_RING(EVENTS, EVENT_RING_BYTES);
DECLARE_RING(STACK_RING, STACK_RING_BYTES);
DECLARE_RING(INTERPRETER_RING, INTERPRETER_RING_BYTES);
DECLARE_RING(CONTROL, 1048576);

/* Stacks that are dumped for the tracer to walk: how many by where the walk was cut, and the room to put them together. */
DECLARE_RING(DUMP_RING, 8388608);
DECLARE_MAP(DUMPS, HASH, u64, u64, 16384);
DECLARE_MAP(DUMP_OF, HASH, u32, struct stack_dump, THREADS);

/* Programs that go on where another one ends: enum program. All are of one kind, as newer kernels (6.18) want it. */
DECLARE_MAP(PROGRAMS, PROG_ARRAY, u32, u32, 16);

/* Shared memory. */
DECLARE_VALUE(SHARED, struct shared);
DECLARE_ARRAY(SITES, struct site, MAX_SITES);
DECLARE_ARRAY(PYTHONS, struct python, TABLES);
DECLARE_ARRAY(CODE_ENDS, u64, 256);
DECLARE_ARRAY(LUAS, struct lua, LUA_LAYOUTS);

/* Tables of mappings; where unwinding rules begin, by page and by address in it; and the rules. */
DECLARE_ARRAY(TABLE_VALUES, struct table, TABLES);
DECLARE_ARRAY(PAGES, u32, 524288);
DECLARE_ARRAY(ROWS, u32, 8388608);
DECLARE_ARRAY(RULES, struct rule, RULES);

/* Read at each turn of a hold, only to pass time. */
DECLARE_ARRAY(DELAY, u8, 262144);

/* Zeros, to begin an entry of a map with. */
DECLARE_VALUE(ZEROS, struct thread);

#endif
