// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of CPython 3.11 and later.
 *
 * The thread's state is found in the interpreter's list, by what pthread_self()
 * returns: that is the same in every pid namespace, and in a forked child. The
 * frames of one call of the evaluation loop are a run; that call's own frame
 * on the C stack holds a thing whose address the frames tell: the C frame
 * (3.11), or the frame that marks the run's end (later).
 */
#ifndef REFLEAK_PYTHON_H
#define REFLEAK_PYTHON_H

#include "abi.h"
#include "interpreters.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

#define THREAD_STATES 512
#define FRAMES_PASSED_OVER 1024
#define MISSES_IN_A_ROW 16 /* then only the 32nd, the 64th, ... */
#define IDENTITY_FIRST 8 /* words of a code object that stay as they are: counts, line, names, tables */
#define IDENTITY_LAST 17

INLINE struct python *python_of(struct thread *thread)
{
	u64 index = thread->table;

	MASK(index, TABLES);
	return &VALUE(PYTHONS)->at[index];
}

/* Look at a thread's state: is it the current one's? */
INLINE int find_state_turn(struct guest_walk *walk)
{
	struct python *python = python_of(walk->thread);
	struct guest *guest = walk->guest;
	u64 state = guest->at;

	if (!state) {
		guest->end = user_word(guest->end + python->next_interpreter);
		if (!guest->end)
			return 1;
		guest->at = user_word(guest->end + python->threads);
		return 0;
	}
	if (user_word(state + python->thread_id) == guest->self) {
		guest->state = state;
		return 1;
	}
	guest->at = user_word(state + python->next_thread);
	return 0;
}

/* The current thread's PyThreadState, or 0. */
INLINE u64 python_state(struct guest_walk *walk, struct guest *guest, struct python *python)
{
	u64 interpreter, newest[2] = {};

	bpf_probe_read_kernel(&guest->self, 8, (void *)(bpf_get_current_task() + TASK_FSBASE));
	if (guest->state && user_word(guest->state + python->thread_id) == guest->self)
		return guest->state;
	guest->state = 0;
	interpreter = user_word(python->runtime + python->interpreters);
	if (!interpreter)
		return 0;
	bpf_probe_read_user(newest, sizeof(newest), (void *)(interpreter + python->threads - 8));
	if (mixed(interpreter, newest[0]) != guest->missed)
		guest->misses = 0;
	/* A new thread's state is in the list before it says whose it is. */
	if (++guest->misses > MISSES_IN_A_ROW && guest->misses & (guest->misses - 1))
		return 0;
	guest->at = newest[1];
	guest->end = interpreter;
	REPEAT(THREAD_STATES, find_state, walk);
	if (!guest->state)
		guest->missed = mixed(interpreter, newest[0]);
	return guest->state;
}

INLINE struct key code_key(struct thread *thread, u64 code)
{
	struct key key = { .address = code, .pid = thread->pid, .generation = thread->generation };

	return key;
}

/* What tells this code object from every other that stands or stood here; 0 if it is none. */
INLINE u64 python_code(struct thread *thread, struct guest *guest, struct python *python, u64 code)
{
	u64 hash = mixed((u64)thread->pid << 16 ^ thread->generation, code), *known;
	struct key key = code_key(thread, code);

	if (python->ends_seen && (known = map_lookup(PYTHON_CODES, &key)))
		return *known;
	if (bpf_probe_read_user(guest->words, (IDENTITY_LAST + 1) * 8, (void *)code))
		return 0;
	if (guest->words[1] != python->code_type)
		return 0;
#pragma unroll
	for (int i = IDENTITY_FIRST; i <= IDENTITY_LAST; i++)
		hash = mixed(hash, guest->words[i]);
	if (python->by_content) {
		u64 table = word_of(guest, python->line_table), file = word_of(guest, python->file);

		hash = mixed(hash, user_word(word_of(guest, python->name) + 24)); /* hash of an interned str */
		hash = mixed_content(guest, hash, table + 32, user_word(table + 16));
		hash = mixed_content(guest, hash, file + python->ascii_text, user_word(file + 16));
	}
	hash |= !hash;
	if (python->ends_seen)
		map_update(PYTHON_CODES, &key, &hash, ANY);
	return hash;
}

/* A code object ends: what stands at its address from now on is another one. */
INLINE void python_code_ends(struct thread *thread, u64 code)
{
	struct key key = code_key(thread, code);

	map_delete(PYTHON_CODES, &key);
}

INLINE int find_end_turn(struct guest_walk *walk)
{
	struct python *python = python_of(walk->thread);
	struct guest *guest = walk->guest;

	if (!guest->at || bpf_probe_read_user(guest->words, 80, (void *)guest->at))
		return 1;
	if (byte_of(guest, python->mark) == python->mark_value) {
		guest->stack.frames[GUEST_FRAMES - 1].place = place_of(guest, guest->at);
		return 1;
	}
	guest->at = word_of(guest, python->previous);
	return 0;
}

/* There is no room for more frames: find at least the place of the run that is cut. */
INLINE void find_end(struct guest_walk *walk, struct guest *guest, struct python *python)
{
	guest->stack.is_cut = 1;
	if (python->mark_is_frame) {
		guest->stack.frames[GUEST_FRAMES - 1].place = place_of(guest, guest->place);
		return;
	}
	REPEAT(FRAMES_PASSED_OVER, find_end, walk);
}

/* Add the frame that is looked at; returns whether it was the last one. */
INLINE int python_frame_turn(struct guest_walk *walk)
{
	struct guest *guest = walk->guest;
	struct python *python = python_of(walk->thread);
	u64 code, id = 0, instruction, previous, own = guest->at;
	u32 place = 0;
	int is_last;

	walk->is_over = !own;
	if (!own || bpf_probe_read_user(guest->words, 80, (void *)own))
		return 1;
	is_last = byte_of(guest, python->mark) == python->mark_value;
	code = word_of(guest, python->code) & ~7ULL;
	instruction = word_of(guest, python->instruction);
	previous = word_of(guest, python->previous);
	BARRIER(is_last);
	if (!is_last && !previous) { /* of no run: 3.15 begins each thread's frames with one like that */
		walk->is_over = 1;
		return 1;
	}
	if (is_last)
		place = place_of(guest, python->mark_is_frame ? guest->place : own);
	if (!is_last || python->mark_is_frame)
		id = python_code(walk->thread, guest, python, code);
	if (!add_guest_frame(guest, id, id ? (instruction - code - python->first_instruction) >> 1 : 0, place, code))
		return 1;
	if (is_last && python->mark_is_frame)
		guest->place = user_word(guest->place + python->c_frame_previous);
	guest->at = previous;
	return 0;
}

INLINE void walk_python(struct thread *thread, struct guest *guest)
{
	struct guest_walk walk = { .thread = thread, .guest = guest };
	struct python *python = python_of(thread);
	u64 state;

	if (!python->runtime)
		return;
	state = python_state(&walk, guest, python);
	if (!state)
		return;
	guest->at = user_word(state + python->current);
	guest->place = 0;
	if (python->c_frame) {
		guest->place = guest->at;
		guest->at = user_word(guest->at + python->c_frame_current);
	}
	REPEAT(GUEST_FRAMES, python_frame, &walk);
	if (!walk.is_over)
		find_end(&walk, guest, python);
}

INLINE void copy_text(u32 *length, u32 *state, u8 *text, u32 room, struct python *python, u64 object)
{
	u64 size;

	bpf_probe_read_user(length, 4, (void *)(object + 16));
	bpf_probe_read_user(state, 4, (void *)(object + 32));
	size = (u64)*length * (*state >> 2 & 7);
	if (size > room)
		size = room;
	BARRIER(size);
	if (size > room)
		return;
	bpf_probe_read_user(text, size, (void *)(object + (*state >> 6 & 1 ? python->ascii_text : python->wide_text)));
}

/* Copy names and location table of a code object, which may be gone when user space looks. */
INLINE void copy_python(struct thread *thread, struct guest *guest, u64 code)
{
	struct python *python = python_of(thread);
	struct guest_code *record = &guest->record;
	u64 table = user_word(code + python->line_table), size;

	record->kind = GUEST_PYTHON;
	record->first_line = user_half(code + python->first_line);
	copy_text(&record->name_length, &record->name_state, record->name, GUEST_NAME_BYTES, python,
		  user_word(code + python->name));
	copy_text(&record->file_length, &record->file_state, record->file, GUEST_FILE_BYTES, python,
		  user_word(code + python->file));
	record->extra_bytes = 0;
	record->table_bytes = user_word(table + 16);
	size = record->table_bytes;
	if (size > GUEST_TABLE_BYTES - 1)
		size = GUEST_TABLE_BYTES - 1;
	MASK(size, GUEST_TABLE_BYTES);
	bpf_probe_read_user(record->table, size, (void *)(table + 32));
}

#endif
