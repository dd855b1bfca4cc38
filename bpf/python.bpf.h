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
#define PAGE_MASK 4095ULL
#define CODE_END_SLOTS 256 /* of CODE_ENDS */
#define NEAR_FRAME 1024 /* bytes: the next frame lies below this one on the thread's stack of frames */
#define MISSES_IN_A_ROW 16 /* then only the 32nd, the 64th, ... */
#define IDENTITY_FIRST 8 /* words of a code object that stay as they are: counts, line, names, tables */
#define IDENTITY_LAST 17

/* What is the same in all versions that are walked; tracer/interpreters/python/layout.py checks it where it is told. */
#define OBJECT_TYPE_WORD 1 /* ob_type of PyObject */
#define FRAME_BYTES 80 /* of _PyInterpreterFrame, as far as its fields are read */
#define STR_LENGTH 16
#define STR_HASH 24 /* of an interned one, known */
#define STR_STATE 32
#define BYTES_SIZE 16
#define BYTES_TEXT 32
#define NEWEST_THREAD_BEFORE 8 /* PyInterpreterState: the count of all threads ever is before threads.head */

INLINE struct python *python_of(struct thread *thread)
{
	u64 index = thread->table;

	MASK(index, TABLES);
	return &VALUE(PYTHONS)->at[index];
}

/* Look at a thread's state: is it the current one's? */
INLINE int find_state_turn(struct interpreter_walk *walk)
{
	struct python *python = python_of(walk->thread);
	struct interpreter *interpreter = walk->interpreter;
	u64 state = interpreter->at;

	if (!state) {
		interpreter->end = user_word(interpreter->end + python->next_interpreter);
		if (!interpreter->end)
			return 1;
		interpreter->at = user_word(interpreter->end + python->threads);
		return 0;
	}
	if (user_word(state + python->thread_id) == interpreter->self) {
		interpreter->state = state;
		return 1;
	}
	interpreter->at = user_word(state + python->next_thread);
	return 0;
}

/* The current thread's PyThreadState, or 0. */
INLINE u64 python_state(struct interpreter_walk *walk, struct interpreter *interpreter, struct python *python)
{
	u64 first, newest[2] = {};

	bpf_probe_read_kernel(&interpreter->self, 8, (void *)(bpf_get_current_task() + TASK_FSBASE));
	if (interpreter->state && user_word(interpreter->state + python->thread_id) == interpreter->self)
		return interpreter->state;
	interpreter->state = 0;
	first = user_word(python->runtime + python->interpreters);
	if (!first)
		return 0;
	bpf_probe_read_user(newest, sizeof(newest), (void *)(first + python->threads - NEWEST_THREAD_BEFORE));
	if (mixed(first, newest[0]) != interpreter->missed)
		interpreter->misses = 0;
	/* A new thread's state is in the list before it says whose it is. */
	if (++interpreter->misses > MISSES_IN_A_ROW && interpreter->misses & (interpreter->misses - 1))
		return 0;
	interpreter->at = newest[1];
	interpreter->end = first;
	REPEAT(THREAD_STATES, find_state, walk);
	if (!interpreter->state)
		interpreter->missed = mixed(first, newest[0]);
	return interpreter->state;
}

INLINE struct key code_key(struct thread *thread, u64 code)
{
	struct key key = { .address = code, .pid = thread->pid, .generation = thread->generation };

	return key;
}

/* How many code objects have ended: of some processes together. */
INLINE u64 *code_ends_of(u32 pid)
{
	u64 slot = pid;

	MASK(slot, CODE_END_SLOTS);
	return &VALUE(CODE_ENDS)->at[slot];
}

/* Forget the code objects that the thread knows, where one has ended meanwhile, or they are another program's. */
INLINE void check_known_codes(struct thread *thread, struct interpreter *interpreter)
{
	u64 ends = *(volatile u64 *)code_ends_of(thread->pid);

	if (interpreter->code_ends == ends && interpreter->pid == thread->pid &&
	    interpreter->generation == thread->generation)
		return;
	interpreter->code_ends = ends;
	interpreter->pid = thread->pid;
	interpreter->generation = thread->generation;
	bpf_probe_read_kernel(interpreter->known, sizeof(interpreter->known), BLANK(INTERPRETERS));
}

INLINE struct known_code *known_code(struct interpreter *interpreter, u64 code)
{
	u64 slot = code >> 4 ^ code >> 11;

	MASK(slot, KNOWN_CODES);
	return &interpreter->known[slot];
}

/* What tells this code object from every other that stands or stood here; 0 if it is none. */
INLINE u64 python_code(struct thread *thread, struct interpreter *interpreter, struct python *python, u64 code)
{
	struct known_code *here = known_code(interpreter, code);
	struct key key = code_key(thread, code);
	u64 hash, *known;

	if (python->ends_seen) {
		if (here->code == code)
			return here->id;
		known = map_lookup(PYTHON_CODES, &key);
		if (known) {
			here->code = code;
			here->id = *known;
			return *known;
		}
	}
	hash = mixed((u64)thread->pid << 16 ^ thread->generation, code);
	if (bpf_probe_read_user(interpreter->words, (IDENTITY_LAST + 1) * 8, (void *)code))
		return 0;
	if (interpreter->words[OBJECT_TYPE_WORD] != python->code_type)
		return 0;
#pragma unroll
	for (int i = IDENTITY_FIRST; i <= IDENTITY_LAST; i++)
		hash = mixed(hash, interpreter->words[i]);
	if (python->by_content) {
		u64 table = word_of(interpreter, python->line_table), file = word_of(interpreter, python->file);

		hash = mixed(hash, user_word(word_of(interpreter, python->name) + STR_HASH));
		hash = mixed_content(interpreter, hash, table + BYTES_TEXT, user_word(table + BYTES_SIZE));
		hash = mixed_content(interpreter, hash, file + python->ascii_text, user_word(file + STR_LENGTH));
	}
	hash |= !hash;
	if (python->ends_seen) {
		map_update(PYTHON_CODES, &key, &hash, ANY);
		here->code = code;
		here->id = hash;
	}
	return hash;
}

/* A code object ends: what stands at its address from now on is another one. */
INLINE void python_code_ends(struct thread *thread, u64 code)
{
	struct key key = code_key(thread, code);

	map_delete(PYTHON_CODES, &key);
	__sync_fetch_and_add(code_ends_of(thread->pid), 1);
}

/* The word at a byte offset of the frame that is looked at. */
INLINE u64 frame_word(struct interpreter *interpreter, u32 offset)
{
	u64 index = interpreter->window.frame + (offset >> 3);

	MASK(index, WINDOW_WORDS);
	return interpreter->window.words[index];
}

INLINE u8 frame_byte(struct interpreter *interpreter, u32 offset)
{
	return frame_word(interpreter, offset) >> ((offset & 7) << 3);
}

/*
 * Look at a frame, which is there already, or is read: where the one before is
 * near, with those that lie below it, as far as its page goes. Returns whether
 * it could be read.
 */
INLINE int look_at_frame(struct interpreter *interpreter, u64 own)
{
	struct window *window = &interpreter->window;
	u64 end = own + FRAME_BYTES, before = window->last, first, size;

	if (own & 7)
		return 0;
	window->last = own;
	if (own >= window->start && end <= window->end) {
		window->frame = (own - window->start) >> 3;
		return 1;
	}
	if (before - own >= NEAR_FRAME) {
		window->frame = APART;
		return !bpf_probe_read_user(&window->words[APART], FRAME_BYTES, (void *)own);
	}
	first = own & ~PAGE_MASK;
	if (end - first > 8 * APART)
		first = end - 8 * APART;
	window->start = window->end = 0;
	size = end - first;
	BARRIER(size);
	if (size > 8 * APART || bpf_probe_read_user(window->words, size, (void *)first))
		return 0;
	window->start = first;
	window->end = end;
	window->frame = (own - first) >> 3;
	return 1;
}

INLINE int find_end_turn(struct interpreter_walk *walk)
{
	struct python *python = python_of(walk->thread);
	struct interpreter *interpreter = walk->interpreter;

	if (!interpreter->at || !look_at_frame(interpreter, interpreter->at))
		return 1;
	if (frame_byte(interpreter, python->mark) == python->mark_value) {
		interpreter->stack.frames[INTERPRETER_FRAMES - 1].place = place_of(interpreter, interpreter->at);
		return 1;
	}
	interpreter->at = frame_word(interpreter, python->previous);
	return 0;
}

/* There is no room for more frames: find at least the place of the run that is cut. */
INLINE void find_end(struct interpreter_walk *walk, struct interpreter *interpreter, struct python *python)
{
	interpreter->stack.is_cut = 1;
	if (python->mark_is_frame) {
		interpreter->stack.frames[INTERPRETER_FRAMES - 1].place = place_of(interpreter, interpreter->place);
		return;
	}
	REPEAT(FRAMES_PASSED_OVER, find_end, walk);
}

/* Add the frame that is looked at; returns whether it was the last one. */
INLINE int python_frame_turn(struct interpreter_walk *walk)
{
	struct interpreter *interpreter = walk->interpreter;
	struct python *python = python_of(walk->thread);
	u64 code, id = 0, instruction, previous, own = interpreter->at;
	u32 place = 0;
	int is_last;

	walk->is_over = !own;
	if (!own || !look_at_frame(interpreter, own))
		return 1;
	is_last = frame_byte(interpreter, python->mark) == python->mark_value;
	code = frame_word(interpreter, python->code) & ~7ULL;
	instruction = frame_word(interpreter, python->instruction);
	previous = frame_word(interpreter, python->previous);
	BARRIER(is_last);
	if (!is_last && !previous) { /* of no run: 3.15 begins each thread's frames with one like that */
		walk->is_over = 1;
		return 1;
	}
	if (is_last)
		place = place_of(interpreter, python->mark_is_frame ? interpreter->place : own);
	if (!is_last || python->mark_is_frame)
		id = python_code(walk->thread, interpreter, python, code);
	if (!add_interpreter_frame(interpreter, id, id ? (instruction - code - python->first_instruction) >> 1 : 0,
				   place, code))
		return 1;
	if (is_last && python->mark_is_frame)
		interpreter->place = user_word(interpreter->place + python->c_frame_previous);
	interpreter->at = previous;
	return 0;
}

INLINE void walk_python(struct thread *thread, struct interpreter *interpreter)
{
	struct interpreter_walk walk = { .thread = thread, .interpreter = interpreter };
	struct python *python = python_of(thread);
	u64 state;

	if (!python->runtime)
		return;
	state = python_state(&walk, interpreter, python);
	if (!state)
		return;
	interpreter->at = user_word(state + python->current);
	interpreter->place = 0;
	if (python->c_frame) {
		interpreter->place = interpreter->at;
		interpreter->at = user_word(interpreter->at + python->c_frame_current);
	}
	check_known_codes(thread, interpreter);
	interpreter->window.start = interpreter->window.end = interpreter->window.last = 0;
	REPEAT(INTERPRETER_FRAMES, python_frame, &walk);
	if (!walk.is_over)
		find_end(&walk, interpreter, python);
}

INLINE void copy_text(u32 *length, u32 *state, u8 *text, u32 room, struct python *python, u64 object)
{
	u64 size;

	bpf_probe_read_user(length, 4, (void *)(object + STR_LENGTH));
	bpf_probe_read_user(state, 4, (void *)(object + STR_STATE));
	size = (u64)*length * (*state >> 2 & 7);
	if (size > room)
		size = room;
	BARRIER(size);
	if (size > room)
		return;
	bpf_probe_read_user(text, size, (void *)(object + (*state >> 6 & 1 ? python->ascii_text : python->wide_text)));
}

/* Copy names and location table of a code object, which may be gone when user space looks. */
INLINE void copy_python(struct thread *thread, struct interpreter *interpreter, u64 code)
{
	struct python *python = python_of(thread);
	struct interpreter_code *record = &interpreter->record;
	u64 table = user_word(code + python->line_table), size;

	record->kind = INTERPRETER_PYTHON;
	record->first_line = user_half(code + python->first_line);
	copy_text(&record->name_length, &record->name_state, record->name, INTERPRETER_NAME_BYTES, python,
		  user_word(code + python->name));
	copy_text(&record->file_length, &record->file_state, record->file, INTERPRETER_FILE_BYTES, python,
		  user_word(code + python->file));
	record->extra_bytes = 0;
	record->table_bytes = user_word(table + BYTES_SIZE);
	size = record->table_bytes;
	if (size > INTERPRETER_TABLE_BYTES - 1)
		size = INTERPRETER_TABLE_BYTES - 1;
	MASK(size, INTERPRETER_TABLE_BYTES);
	bpf_probe_read_user(record->table, size, (void *)(table + BYTES_TEXT));
}

#endif
