// SPDX-License-Identifier: GPL-2.0
/*
 * What is kept per thread of the target: its process's identity, the call that
 * it is in, and the unwinder's scratch. Per thread and not per CPU, since
 * uprobe programs can be preempted from Linux 6.0 on.
 */
#ifndef REFLEAK_THREADS_H
#define REFLEAK_THREADS_H

#include "abi.h"
#include "draws.h"
#include "ids.bpf.h"
#include "interpreters.bpf.h"
#include "maps.bpf.h"
#include "verifier.h"
#include "walk_cache.h"

/* The free that the thread did last. */
struct last_free {
	u64 address;
	u64 slot; /* address of its return address */
	u64 site;
};

/* What to do once the stack is known. */
struct intent {
	u64 address;
	u64 object;
	u64 value;
	u64 size;
	u64 name;
	s32 count_read;
	s32 count;
	u16 site;
	u8 operation;
	u8 flags;
	u32 then; /* index of the program that does it */
};

struct walk {
	u64 pc;
	u64 sp;
	u64 bp;
	u64 hash;
	u64 instance; /* cursor in the kernel's list of return probes */
	u32 table;
	u32 last; /* mapping of the last frame */
	u32 is_caller; /* pc is a return address: look up pc - 1 */
	u64 back; /* of the first frame: bytes from the address that it is called by to the one it is at */
	u32 by_frame_pointer;
	u32 status;
	u32 done;
	u64 start; /* pc and sp where it began, and the frame pointer */
	u64 start_bp;
	u64 origin;
	u64 known; /* id of the stack, if the walk cache told it; else 0 */
	u64 candidate; /* id of the stack, if what the cached walk has further out is unchanged too; else 0 */
	u64 tag; /* by which the walk is looked for among those that are remembered */
	u64 hash_of_callers; /* what it is made of */
	u64 parting; /* where it is another one: the tag that both have, and its place */
	u32 parting_index;
	u32 is_parted; /* the tag is of further callers too */
	u32 is_other; /* the cached walk with that tag is of other callers, it seems */
	u64 version; /* of the cached walk that was found */
	u64 suffix; /* frames of the trail that the walk ended in, innermost to come first; else 0 */
	u32 may_join;
	u32 has_looked; /* the stack was compared with the trail's: */
	u64 unchanged; /* so many of its words are as they were */
	u64 compared; /* of so many */
	u64 to_push; /* steps that are not yet in the trail */
	u64 needs_bp; /* of pushes: the frame outside depends on the frame pointer */
	u64 outer_by_frame_pointer;
	u32 cache_index; /* of the cached walk that was found, or is to be written */
	u32 forgettable; /* it cannot be recognised */
	u64 codes; /* its steps by code */
	u64 code_hash;
	u64 turn;
	u64 code; /* read at a return address */
};

/* What a step of a walk found, innermost first. */
struct step {
	u64 pc; /* FRAME_EXACT where it is no return address; 0: like no other */
	u64 sp;
	u64 bp;
	u64 bp_slot; /* where it read it from; 0: it did not */
	u64 extra_slot; /* a word that it depended on, beside the return address; 0: none */
	u64 extra;
	u64 flags; /* enum step_flag */
};

enum step_flag {
	STEP_USED_BP = 1,
	STEP_BY_FRAME_POINTER = 2,
	STEP_LAST = 4, /* it went to no caller */
};

/* Words of the stack: where, in units of 8 bytes, and what. */
struct words {
	u32 place[CACHED_WORDS + CACHED_STRIDE];
	u64 value[CACHED_WORDS + CACHED_STRIDE];
};

/* A frame of the trail. `hash`: of this one and all further out; `words`: that these depended on. */
struct trail_frame {
	u64 pc;
	u64 sp;
	u64 bp;
	u64 frame;
	u64 hash;
	u32 words;
	u16 segments;
	u8 uses_bp; /* they depended on the frame pointer as it is here */
	u8 by_frame_pointer; /* some were found by it */
};

/* A part of the stack that is read at once: big arrays of the program's lie in between. */
struct segment {
	u64 start;
	u64 end;
	u64 first; /* word */
};

/*
 * The last walk that was made, outermost frame first, to end others in: from a
 * frame at the same place, with the same words further out, they go on alike.
 * It changes at its inner end as the stack does.
 */
struct trail {
	u64 epoch;
	u64 depth;
	u64 words;
	u64 may_join;
	u64 segments;
	struct segment segment[TRAIL_SEGMENTS];
	struct trail_frame frame[MAX_FRAMES + 1];
	struct words stack_words;
	u8 at[TRAIL_PLACES]; /* by stack pointer: where in `frame` to look */
};

/*
 * A walk that can be recognised, by the thread that made it: where it began, and every word of the stack
 * that it depended on, with its value. Where all of them still hold the same
 * values, the unwinder would take the same path: the stack is the same. A saved
 * frame pointer that no frame was found by is not among them; comparing fewer words than
 * these would not be sound. Code without a rule decided by its own bytes, which
 * a compiler may have replaced: they are compared as well.
 */
struct cached_walk {
	u64 tag; /* 0: not in use */
	u64 is_parting; /* no walk, but where further callers tell walks apart */
	u64 version; /* odd while it is written */
	u64 is_taken; /* by who writes it */
	u64 pc; /* FRAME_EXACT where it is no return address */
	u64 sp;
	u64 bp;
	u64 epoch;
	u64 stack;
	u32 pid;
	u32 tid;
	u32 uses_bp; /* the walk depended on the frame pointer as it was at the start */
	u32 words;
	u32 inner; /* the words from here on are near */
	u32 reach; /* bytes from the word below sp to the end of what is near */
	u32 outer; /* segments that have the other words */
	u32 codes;
	u64 code_hash; /* of the code at each of `code` */
	u64 code[CACHED_CODES];
	struct segment segment[CACHED_SEGMENTS];
	struct words stack_words;
	u32 has_places; /* and the depth, which interpreters ask for */
	u32 depth;
	u32 places[MAX_FRAMES + 1];
};

_Static_assert(sizeof(struct cached_walk) <= ROOM_OF_cached_walk, "struct cached_walk outgrew its map");

/* A frame that was walked before, of which neither mapping nor rule need be looked for; until the epoch changes. */
struct known_frame {
	u64 pc; /* FRAME_EXACT where it is no return address; 0: none */
	u64 epoch;
	u64 frame;
	struct rule rule;
};

#define CALL_BYTES 32 /* that are read of the code before a return address */
#define CALL_LOADS 3

/* A call by a register, as it is read backwards from its return address. */
struct indirect_call {
	u64 registers[REGISTERS];
	u64 back; /* its return address */
	u64 called_by; /* the register */
	u64 loads; /* instructions that load it, and the register that its word is found by, and so on */
	s64 displacement[CALL_LOADS + 1]; /* of each, from 1 on */
	u64 id; /* the register that the last one goes by */
	u64 root; /* what is in it; or an address beside the code */
	u64 is_rooted; /* it is as it was at the call */
	u64 path; /* where each instruction begins: bytes before the return address */
	u8 code[CALL_BYTES + 8]; /* 8 bytes are read at once */
};

#define PIECE_WORDS 8
#define HOLDER_PIECES 4 /* with pointers to counted objects that are told of: few blocks have one of them */

/* A block that is being freed, and what it holds. */
struct freed_holder {
	u64 address;
	u64 size;
	u64 birth; /* stacks */
	u64 freed;
	u64 pieces; /* with pointers to counted objects */
	u64 offset[HOLDER_PIECES];
	u64 word[HOLDER_PIECES][PIECE_WORDS];
	u64 read[PIECE_WORDS]; /* the piece that is looked at */
};

struct thread {
	u64 epoch;
	u64 forked_ns;
	u64 trampoline; /* where the kernel's return probes return to; 0 until seen */
	u32 pid; /* whose memory it is */
	u16 generation;
	u16 traced;
	u32 table;
	u32 tid;
	struct space_totals totals;
	struct draws draws;
	u64 is_copy; /* its process may hold blocks of its parent's */
	struct pending pending;
	struct unknown_free unknown_free;
	u64 by_events; /* its process has events in place of links */
	u64 is_preloaded; /* its process calls the heap through the library of --preload */
	struct last_free last_free;
	struct freed_holder freed_holder;
	struct pending interrupted; /* what a signal came in the midst of; `pending` is its handler's then */
	struct intent intent;
	struct indirect_call indirect_call;
	struct walk walk;
	struct stack stack;
	u32 places[MAX_FRAMES + 1]; /* of each frame of it: its stack pointer, from the walk's origin */
	u32 interpreters; /* enum interpreter_kind: interpreters that it may run */
	u64 window[CACHED_REACH / 8]; /* a part of the stack as it is now, to be compared */
	struct step steps[MAX_FRAMES + 1];
	struct trail trail;
	struct known_frame known[KNOWN_FRAMES];
	u64 code[CACHED_CODES]; /* addresses of code that the walk depends on */
	u64 stack_end; /* from here on there is no stack, if it was read up to here; else 0 */
	u64 near_start; /* a part of the stack, as it was when the walk came there */
	u64 near_bytes;
	u64 near_wanted; /* bytes that the last walk was recognised by */
	u64 near[NEAR_BYTES / 8];
};

_Static_assert(sizeof(struct thread) <= ROOM_OF_thread, "struct thread outgrew its map");
#define SAME_PLACE(field) \
	_Static_assert(__builtin_offsetof(struct thread, field) == __builtin_offsetof(struct thread_head, field), \
		       #field)

SAME_PLACE(pid);
SAME_PLACE(generation);
SAME_PLACE(totals);
SAME_PLACE(pending);
SAME_PLACE(unknown_free);

INLINE void flush_totals(struct thread *thread)
{
	struct key key = { .pid = thread->pid, .generation = thread->generation };
	struct space_totals *sum = map_lookup(SPACE_TOTALS, &key);

	if (!sum) {
		struct space_totals none = {};

		map_update(SPACE_TOTALS, &key, &none, NOEXIST);
		sum = map_lookup(SPACE_TOTALS, &key);
		if (!sum) {
			lose(LOSS_SPACE_TOTALS_FULL);
			return;
		}
	}
	add(&sum->made, thread->totals.made);
	add(&sum->made_bytes, thread->totals.made_bytes);
	add(&sum->freed, thread->totals.freed);
	add(&sum->freed_bytes, thread->totals.freed_bytes);
	add(&sum->unknown_frees, thread->totals.unknown_frees);
	add(&sum->events, thread->totals.events);
	__builtin_memset(&thread->totals, 0, sizeof(thread->totals));
}

/* Differs after any change that a thread must learn of: each part only grows. */
INLINE u64 current_epoch(void)
{
	return SHARED->epoch + SHARED->published;
}

INLINE void refresh_thread(struct thread *thread, u32 pid)
{
	struct process *process = map_lookup(PROCESSES, &pid);
	u64 epoch = current_epoch();
	u32 *table, space;

	thread->traced = 0;
	thread->epoch = epoch;
	thread->stack_end = 0;
	if (!process || process->state != PROCESS_TRACED)
		return;
	if (thread->pid != process->space || thread->generation != process->generation) {
		if (thread->pid)
			flush_totals(thread);
		thread->pid = process->space;
		thread->generation = process->generation;
	}
	thread->forked_ns = process->forked_ns;
	thread->is_copy = process->is_copy;
	thread->is_preloaded = process->is_preloaded;
	space = process->space;
	thread->by_events = map_lookup(BY_EVENTS, &space) != 0;
	table = map_lookup(TABLE_OF, &space);
	thread->table = table ? *table & ~TABLE_SHARED : 0;
	thread->interpreters = interpreters_of(thread->tid, &thread->table);
	thread->traced = 1;
}

/* The current thread if it is traced and the probes are armed, else NULL. */
INLINE struct thread *current_thread(void)
{
	u32 key = kernel_tid();
	struct thread *thread;

	if (!SHARED->armed)
		return 0;
	thread = map_lookup(THREADS, &key);
	if (!thread) {
		u64 id = current_ids();
		u32 pid = id >> 32;
		struct process *process = map_lookup(PROCESSES, &pid);

		if (!process || process->state != PROCESS_TRACED)
			return 0;
		map_update(THREADS, &key, BLANK(THREADS), NOEXIST);
		thread = map_lookup(THREADS, &key);
		if (!thread) {
			lose(LOSS_THREADS_FULL);
			return 0;
		}
		thread->tid = id;
		thread->epoch = ~0ULL;
	}
	if (thread->epoch != current_epoch())
		refresh_thread(thread, current_ids() >> 32);
	return thread->traced ? thread : 0;
}

/*
 * Whether the probe that was hit is not the one that counts. The kernel asks only
 * whether the memory is the same, so a vfork child meets its parent's perf events
 * beside its own, and a process that got events at places meets its links until
 * these are closed. Another run's events at the same place tell of whoever has
 * those. The upper half of a cookie has the process of a perf event, 0 for
 * uprobe_multi, OF_PLACE for an event that all at the place have in common.
 */
INLINE int is_of_other(struct thread *thread, u64 cookie)
{
	u32 whose = cookie >> 32;

	if (whose == OF_PLACE)
		return !thread->by_events;
	return thread->by_events || (whose && whose != current_ids() >> 32);
}

/* The current thread's record, for a program that was tail-called. */
INLINE struct thread *same_thread(void)
{
	u32 key = kernel_tid();

	return map_lookup(THREADS, &key);
}

INLINE struct key key_of(struct thread *thread, u64 address, u16 group)
{
	struct key key = {
		.address = address,
		.pid = thread->pid,
		.generation = thread->generation,
		.group = group,
	};

	return key;
}

#endif
