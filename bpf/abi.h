// SPDX-License-Identifier: GPL-2.0
/*
 * What the BPF programs and Python share: constants, and the structs that
 * cross between them. Plain C, so that the host compiler can read it too:
 * tests/unit/bpf/test_abi.py compiles it and compares every size and offset with
 * the numpy dtypes of tracer/model/records.py.
 */
#ifndef REFLEAK_ABI_H
#define REFLEAK_ABI_H

#ifdef REFLEAK_BPF
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

#define MAX_FRAMES 127
#define MAX_SITES 4096
#define NAME_BYTES 64
#define PATH_BYTES 256
#define PENDING_DEPTH 32
#define LIFE_BINS 32
#define LIFE_SHIFT 12

/* A frame is a binary's id above a link address; for code in no binary, its table's `anonymous` above its address. */
#define FRAME_BINARY_SHIFT 48
/* The address is the very instruction, not one after a call: above a signal frame. */
#define FRAME_EXACT (1ULL << 47)

enum operation {
	OP_NONE,
	OP_CREATE,
	OP_GET,
	OP_PUT,
	OP_DELETE,
	OP_ALLOC,
	OP_REALLOC,
	OP_FREE,
	OP_MAP,
	OP_UNMAP,
	OP_REMAP,
	OP_ERROR, /* event only: a rule of counting was broken */
	OP_UNDO, /* event only: the unmap or remap of this thread failed */
	OP_NAME, /* no event: the call names a type, which it returns a handle of */
	OP_INTERPRETER, /* no event: the call enters an interpreter, whose state is `object` and whose layout `type` */
	OP_CODE_END, /* no event: the call ends `object`, code of an interpreter */
	OP_HOLDER_FREED, /* event only: a block in which a pointer to a counted object stood was freed */
};

enum error_kind {
	ERROR_NONE,
	ERROR_OVER_PUT,
	ERROR_USE_AFTER_ZERO,
	ERROR_DELETE_WHILE_REFERENCED,
	ERROR_REINITIALISED,
	ERROR_DOUBLE_FREE,
	ERROR_INVALID_FREE,
	ERROR_MISMATCHED_FREE, /* told from an invalid one by the blocks that live on */
	ERROR_FREED_WHILE_COUNTED, /* told by the blocks that were freed, as the next one */
	ERROR_FREED_PAST_COUNTER, /* with no reference but the creator's */
};

/* Where a value is found when a probe fires. */
enum location_kind {
	AT_NOWHERE,
	AT_REGISTER, /* register `reg`, by enum register_id */
	AT_STACK, /* the 8 bytes at the stack pointer + offset */
	AT_RETURN, /* the return value; only at a return probe */
	AT_CONSTANT, /* offset itself */
	AT_OBJECT, /* the object + offset; dereference and adjust come before the offset */
	AT_CODE, /* the probed instruction's address + offset */
};

#define REGISTERS 16 /* those that DWARF numbers first, the general ones: enum register_id of the architecture */

struct location {
	u8 kind;
	u8 reg;
	u8 dereference; /* 1: the value is the pointer at value + adjust; 2: the int there; 0: value + adjust */
	u8 width; /* bytes that count: 4 or 8 */
	s32 offset;
	s32 adjust;
};

enum site_flag {
	SITE_PRODUCT = 1, /* the size is count times size */
	SITE_FREES_ON_ZERO = 2, /* realloc to size 0 that returns NULL has freed */
	SITE_OUT_POINTER = 4, /* the result is written through `name` (posix_memalign) */
	SITE_COUNTER = 8, /* `counter` holds the counter's address; else counts are only followed */
	SITE_ENTRY_RESULT = 16, /* the event is complete at entry, no return probe */
	SITE_DELETES_OBJECT = 32, /* `object` is given, not the counter: ends all its counters */
	SITE_NAMED = 64, /* `name` is the type's name, a C string */
	SITE_REPLACES = 128, /* a create of what is alive ends it, which is no error */
	SITE_SHARES = 256, /* a create of what is alive is a get */
	SITE_FOLLOWS = 1024, /* the counter is believed: some functions of the type were inlined */
	SITE_INLINED = 2048, /* a copy in another function: there is no return address, the stack begins here */
	SITE_HANDLE = 512, /* `name` is a handle that a call of OP_NAME returned, or unknown */
	SITE_CLASS = 4096, /* `name` is where the object has the pointer to its class */
	SITE_WRAPPER = 8192, /* in the library of --preload */
	SITE_MADE = 16384, /* there: behind the real call, which made `object` */
	SITE_DROPPED = 32768, /* there: the same, and the block was not drawn */
};

/* What return value says that a call did nothing. */
enum failure {
	FAILURE_NEVER,
	FAILURE_NULL,
	FAILURE_NEGATIVE, /* of the int */
	FAILURE_NONZERO, /* of the int */
};

struct site {
	u8 operation; /* OP_NONE: what is created within is not counted */
	u8 failure;
	u16 flags;
	u16 group; /* family of types whose addresses share one name space */
	u16 return_distance; /* bytes from the stack pointer at the probe to the return address; SITE_INLINED: from the copy's
				 * first instruction to the probe */
	u64 type; /* type for sites that are not SITE_NAMED */
	struct location object;
	struct location counter;
	struct location count; /* create: the first count; alloc: the factor of size */
	struct location size; /* alloc, map: bytes; get, put: by what the counter has changed before the probe */
	struct location name;
	struct location holder;
};

/* Identity of a live thing: address space first, then address. */
struct key {
	u64 address;
	u32 pid;
	u16 generation; /* of the address space: grows at each exec and pid reuse */
	u16 group;
};

struct allocation {
	u64 size;
	u64 time_ns;
	u64 stack;
	u32 tid;
	u16 site;
	u16 alignment; /* that was asked for; 0: none, or more than 32 KiB */
};

struct object {
	u64 object;
	u64 type;
	u64 time_ns;
	u64 stack;
	s64 count; /* as followed; in the kernel's map without `gets` and `puts`: one atomic addition less for each */
	u64 gets;
	u64 puts;
	u32 tid;
	u32 serial;
	s32 initial;
	s32 count_read; /* the counter's value before the last operation */
	s32 drift; /* read minus followed, at the last operation */
	u16 site;
	u16 flags;
};

enum object_flag {
	OBJECT_COUNT_UNREAD = 1, /* the counter could not be read */
	OBJECT_THREADS = 2, /* operations came from more than one thread */
	OBJECT_ENDING = 4, /* a call is under way that may end it */
	OBJECT_FOLLOWS = 8, /* its counter is believed rather than the calls that were seen */
};

/* An object that ended; kept a while, to explain what comes after the end. */
struct released {
	u64 type;
	u64 birth; /* stacks */
	u64 release;
	u64 time_ns;
	u32 serial;
	u16 by_delete;
	u16 revived;
};

/* One record of the event ring. What its unions hold goes by `operation`. */
struct event {
	u64 time_ns;
	u64 address; /* counter, start of the mapping, or what was freed */
	union {
		u64 object; /* create, get, put, delete, holder freed */
		u64 length; /* map, unmap, remap */
		u64 release; /* error: stack */
	};
	u64 stack;
	union {
		u64 type; /* create */
		u64 holder; /* get, put */
		u64 mapping_flags; /* map: mmap's, and MAPPED_BY_HEAP */
		u64 old_address; /* remap */
		u64 birth; /* error, holder freed: stack */
	};
	union {
		u64 old_length; /* remap */
		u64 broken_type; /* error: of the object */
	};
	u32 pid;
	u32 tid;
	u16 generation;
	u16 group;
	u16 site;
	u8 operation;
	union {
		u8 flags; /* create, get, put, delete: enum event_flag */
		u8 remap; /* remap: enum remap_record */
		u8 error; /* error: enum error_kind */
	};
	union {
		s32 count_read; /* create, get, put, delete */
		s32 where; /* error of a free: the address lies there, WHERE_... */
		s32 offset; /* holder freed: bytes from its start to the pointer */
	};
	union {
		s32 count; /* followed, after the operation; create: the first count */
		s32 block_size; /* error of a free, holder freed */
	};
	u32 serial;
	u32 reserved;
};

enum event_flag {
	EVENT_LAST = 1, /* this operation ended the object */
	EVENT_UNKNOWN = 2, /* the object was not seen to be created */
	EVENT_COUNT_UNREAD = 4,
};

/* A remap has two records: what it takes away, and what it gives. */
enum remap_record {
	REMAP_ENTRY = 1,
	REMAP_RETURN = 2,
};

enum stack_status {
	STACK_COMPLETE,
	STACK_TRUNCATED, /* more than MAX_FRAMES */
	STACK_NO_TABLE, /* code without unwind information */
	STACK_FAULT, /* the stack could not be read */
	STACK_UNSUPPORTED, /* a rule that the unwinder does not know */
	STACK_FRAME_POINTER, /* complete, but partly by frame pointers */
};

/* One record of the stack ring; `frames` are leaf first. */
struct stack {
	u64 id; /* hash of what follows */
	u32 status;
	u32 depth;
	u64 frames[MAX_FRAMES + 1];
};

/*
 * Registers and memory of a stack whose walk ended early, for user space to go
 * on from; the dump ring. `words` begin at the page that the stack pointer is in.
 */
#define DUMP_PAGES 5
#define PAGE_WORDS 512
#define DUMP_WORDS (DUMP_PAGES * PAGE_WORDS)
#define DUMPS_OF_A_CUT 1024 /* dumps sent of stacks that were cut in the same code */
#define DUMPS_FUTILE (1ULL << 32) /* so many, if none of them led further: no more are made */
#define STACK_REACH (1 << 23) /* bytes above the stack pointer that are taken for the stack */
#define RETURN_INSTANCES 16

/* Where code is, roughly: no mapping of a table is outside of its two ranges. */
#define CODE_RANGES 2
struct code_range {
	u64 start;
	u64 end;
};

struct return_instance {
	u64 slot; /* where the trampoline of a return probe stands */
	u64 address; /* what it stands for */
};

/* What is to be written to a thread's stack: return addresses, true ones or those of probes. */
#define STACK_WORDS_MAX 64 /* MAX_URETPROBE_DEPTH: the kernel has no more return probes pending */
struct stack_words {
	u64 count;
	struct return_instance word[STACK_WORDS_MAX];
};

/* A thread waits until its stack words are written; released like one that is held. */
struct stack_request {
	u64 ticket;
	u32 pid;
	u32 tid;
};

struct stack_dump {
	u64 id; /* of the stack */
	u64 cut; /* code in which it was cut, key of the map that counts the dumps */
	u64 start; /* where its first frame is: a return address, or marked FRAME_EXACT */
	u64 ip;
	u64 registers[REGISTERS]; /* those that calls preserve, by enum register_id; the others are 0 */
	u32 pid;
	u16 generation;
	u16 pages; /* that could be read */
	struct code_range code[CODE_RANGES]; /* of the table that was used */
	struct return_instance pending[RETURN_INSTANCES];
	u64 words[DUMP_WORDS];
};

/* Per stack, what was allocated there and what became of it. */
struct stack_totals {
	u64 made;
	u64 made_bytes;
	u64 freed;
	u64 freed_bytes;
	u64 life_ns; /* sum over the freed */
	u64 life_min_ns;
	u64 life_max_ns;
	u64 peak; /* most that was alive at once */
	u64 level; /* what was alive when it last rose by more than an eighth above the level before */
	u64 risen; /* `made` at that moment */
	u32 site; /* of the last that was made */
	u32 callers; /* a bit by hash for each place that was seen to free */
	u32 lives[LIFE_BINS]; /* the freed by age: below 4096 ns, then each bin twice as long */
};

/* Where a block was made and where it was freed; its value says what was seen of the frees that were looked at. */
struct free_site {
	u64 made; /* stacks */
	u64 freed;
	u64 given; /* enum given */
	u64 called; /* by an indirect call: the frame of the function, marked FRAME_EXACT; else, and if not certain, 0 */
};

/* What the free's second argument is, where it may be one: of a sized or an aligned operator delete. */
enum given {
	GIVEN_SIZE = 1, /* the block's size */
	GIVEN_ALIGNMENT = 2, /* the alignment that it was made with */
	GIVEN_REALLOC = 4, /* none: it was freed by a realloc */
	GIVEN_INHERITED = 8, /* the block is an ancestor's, freed in a child */
};

struct free_seen {
	u64 count;
	u64 address; /* this and the rest: of the first */
	u64 size;
	u64 argument;
	u32 pid;
	u16 generation;
	u16 site;
	u64 alignment; /* that the block was made with; 0: not known */
	u64 path; /* where the instructions that tell `called` begin: a byte for each, from the return address back */
};

enum type_source {
	TYPE_TEXT, /* `name` */
	TYPE_UNREAD, /* the string at `pointer`, which could not be read */
	TYPE_CLASS, /* the symbol at `pointer`, else `otherwise` */
};

struct type_name {
	u64 pointer;
	u64 otherwise; /* a type */
	u32 pid;
	u16 generation;
	u16 source;
	char name[NAME_BYTES];
};

/* A thing that happened to a process; the control ring. */
enum control_kind {
	CONTROL_NONE,
	CONTROL_FORK,
	CONTROL_EXEC,
	CONTROL_EXIT,
	CONTROL_LOADER, /* the dynamic loader changed the mappings; held */
	CONTROL_FORKED, /* a forked child before its first own step; held */
	CONTROL_EXECUTES, /* about to exec; held */
	CONTROL_MAPPED, /* the program made memory executable, or moved some; held */
	CONTROL_UNMAPPED, /* the program took executable memory away */
	CONTROL_STARTED, /* first instruction of the program's image; held */
	CONTROL_EXECUTES_AT, /* the same by execveat */
	CONTROL_FORKS, /* the maker of a forked child goes on; held */
	CONTROL_JIT, /* __jit_debug_register_code; held */
	CONTROL_FRAMES, /* __register_frame; held */
	CONTROL_FRAMES_GONE, /* __deregister_frame: the same */
	CONTROL_ENDING, /* _exit, abort; held */
	CONTROL_DISPATCHES, /* prctl: signals are to take the place of system calls, the probes' too; held */
	CONTROL_PATCHES, /* the program made code of a file writable; held */
	CONTROL_THREAD_ENDED, /* the first thread, or one after it, while others go on */
	CONTROL_LEAVES, /* pthread_exit by the first thread; held */
};

/* When something reads, or leaves by, the return addresses on the stack; the cookie of on_unwinding. */
enum unwinding {
	UNWINDING_BEGINS, /* frames are about to be looked at, or left */
	UNWINDING_ENDS, /* it returns to where it began */
	UNWINDING_CAUGHT, /* an exception is handled: all frames below are gone */
};

#define HELD_REGISTERS 21 /* in the order of struct pt_regs */

struct control_fork {
	u32 parent;
	u16 parent_generation;
	u16 shares_memory;
};

struct control_range {
	u64 start;
	u64 length;
};

/* A thread as it stands at its process's last call: the number that user space knows it by, and its registers. */
struct control_ending {
	u64 thread;
	u64 registers[HELD_REGISTERS];
};

/* What its union holds goes by `kind`. */
struct control {
	u64 time_ns;
	u64 ticket; /* held: what to release */
	u32 pid;
	u32 tid; /* the kernel's own number: names the slot of a hold */
	u16 generation;
	u16 kind;
	u32 thread; /* held: as its process numbers it; else 0 */
	union {
		struct control_fork fork;
		char path[PATH_BYTES]; /* exec, executes */
		u64 wait_status; /* exit */
		struct control_range range; /* mapped, unmapped, patches */
		u64 descriptor; /* jit: address of __jit_debug_descriptor */
		u64 frames; /* frames, frames gone: the call's argument */
		struct control_ending ending;
	};
};

/* Every way to lose something. Order is the index into the loss counters. */
enum loss {
	LOSS_LIVE_FULL, /* live allocation not kept */
	LOSS_OBJECTS_FULL, /* live object not kept */
	LOSS_EVENTS_FULL, /* event ring full */
	LOSS_STACKS_FULL, /* stack ring full: a stack has no frames */
	LOSS_TOTALS_FULL, /* stack totals not kept */
	LOSS_PENDING_FULL, /* calls nested deeper than PENDING_DEPTH */
	LOSS_PENDING_STALE, /* call that never returned was overwritten */
	LOSS_THREADS_FULL, /* too many threads */
	LOSS_PROCESSES_FULL,
	LOSS_CONTROL_FULL, /* control ring full */
	LOSS_HOLD_EXPIRED, /* a process ran on before it was ready */
	LOSS_TYPES_FULL,
	LOSS_UNWIND_REFUSED, /* tail call failed */
	LOSS_ARGUMENT_UNREAD, /* an argument could not be read */
	LOSS_INTERPRETERS_FULL, /* frames of an interpreter not kept */
	LOSS_RETURN_HIDDEN, /* a replaced return address could not be put back */
	LOSS_DEEP_BOUND, /* a library whose calls pass the wrappers of --preload by */
	LOSS_GHOSTS_FULL, /* block that was freed after a fork not kept */
	LOSS_SPACE_TOTALS_FULL, /* what an address space did not kept */
	LOSS_INHERITED_FULL, /* free of a parent's block not kept */
	LOSS_COUNT,
};

/* A process that is traced, by pid; kept after its end, while it may be asked for as an ancestor. */
struct process {
	u64 started_ns;
	u64 forked_ns; /* last fork of this process that copied its memory, 0 for none */
	u32 parent;
	u32 space; /* pid whose memory it works on: its own, or its parent's until a vfork child execs */
	u16 generation; /* of that memory */
	u16 own_generation;
	u16 state; /* enum process_state */
	u16 is_copy; /* its memory began as a copy of its parent's, until it execs */
	u32 source; /* whose memory that is, a pid, 0 for none */
	u32 source_generation;
	u32 is_preloaded; /* it calls the heap through the library of --preload: what else is probed of it does not count */
	u32 first_ended; /* its first thread has ended before others */
	u64 alone_ns; /* when it was forked, if its maker had no other thread that freed meanwhile; else 0 */
};

/* What one address space did; by struct key without an address. */
struct space_totals {
	u64 made;
	u64 made_bytes;
	u64 freed;
	u64 freed_bytes;
	u64 unknown_frees; /* of blocks not kept, or not made here */
	u64 events;
};

/* A block that its maker freed after a fork: a child may still hold its copy. */
struct ghost {
	struct allocation allocation;
	u64 freed_ns;
};

/* Of a ghost that another one at the same address has replaced: children of different forks hold copies of each. */
struct ghost_key {
	struct key key;
	u64 time_ns; /* of the allocation */
};

/* What a realloc found of the block that it was given. */
enum old_block {
	OLD_NONE,
	OLD_TAKEN, /* it was alive */
	OLD_UNKNOWN,
};

#define MAPPED_BY_HEAP (1ULL << 32) /* inside of a call of the heap */

/* An allocator call between its entry and its return. */
struct pending {
	u64 slot; /* address of its return address; 0: none */
	u64 address; /* realloc, remap: the old block; posix_memalign: the out pointer */
	u64 size;
	u64 extra; /* map: flags, and MAPPED_BY_HEAP; remap: the old length */
	u64 site;
	u64 had_old; /* enum old_block */
	u64 back; /* of a wrapper: its return address, by which it is known to be under way; else 0 */
	struct allocation old; /* of realloc: put back if it fails */
};

/* The last free or realloc of what was neither alive nor freed lately: libc may abort in it. */
struct unknown_free {
	u64 address; /* 0: none */
	u64 slot; /* address of its return address */
	u64 back; /* that */
	u64 time_ns;
	u64 on_stack; /* of the thread */
	u64 site;
};

/* How the kernel side's struct thread begins, for what it has not told yet. */
struct thread_head {
	u64 unread[3];
	u32 pid;
	u16 generation;
	u16 traced;
	u32 table;
	u32 tid;
	struct space_totals totals;
	u64 unread_draws[3];
	u64 is_copy;
	struct pending pending;
	struct unknown_free unknown_free;
};

/* What the free of an unknown address is. */
enum unknown_frees {
	UNKNOWN_FREES_ARE_COUNTED, /* not all blocks are kept */
	UNKNOWN_FREES_ARE_BAD, /* every block was seen to be made */
	UNKNOWN_FREES_MAY_BE_OLDER, /* than the trace */
};

/* Where an address that is no block's lies; from AROUND_SHIFT on: how far inside of a block that is alive. */
enum where {
	WHERE_ON_STACK = 1,
	WHERE_ABORTED = 2, /* the C library ended the program in this very call; Python's */
	WHERE_NO_MEMORY = 4, /* in no page that is there: that before a block, which libc has written to, always is */
	WHERE_BEHIND_FRAMES = 8, /* on the stack of a thread, behind all of its frames; Python's */
};
#define AROUND_SHIFT 8

/* Blocks that were freed lately, by a hash of the address. */
#define FREED_WAYS 4
struct freed_block {
	u32 pid;
	u16 generation;
	u16 group;
	u64 stack; /* of the birth; 0: not seen, by a parent */
	u64 size;
	u64 release; /* stack of the free; 0: not kept */
};
struct freed_set {
	u64 address[FREED_WAYS];
	u64 time_ns[FREED_WAYS];
	struct freed_block block[FREED_WAYS];
};

/* Live blocks whose addresses have one hash. An address is 0 where there is none; `owner`: the rest of its key. */
#define BLOCK_WAYS 4
struct block_set {
	u64 address[BLOCK_WAYS];
	u64 owner[BLOCK_WAYS];
	u64 is_taken[BLOCK_WAYS]; /* the address may not be there yet, or be gone already */
	u64 is_spilled; /* blocks that had no room here went to the map behind */
	struct allocation block[BLOCK_WAYS];
};

/* What a held thread waits for. */
struct hold {
	u64 ticket;
	u64 code; /* an address that can be read */
	u64 no_flags; /* 0, which the verifier does not know */
	u64 rescheduled_ns; /* when another one could last have the processor */
	u64 turned_ns; /* when it was last looked whether it is released */
	u64 silent_ns; /* since when the tracer could have beaten, and has not */
};

/* The counters that belong to one object, for a delete that names only the object. */
#define OBJECT_COUNTERS 4
struct counters {
	u64 counter[OBJECT_COUNTERS];
};

enum process_state {
	PROCESS_WAITS, /* until it has exec'd */
	PROCESS_TRACED,
	PROCESS_ENDED,
};

/* An executable mapping, as the unwinder looks it up. */
struct mapping {
	u64 start;
	u64 end;
	u64 bias; /* address - link address */
	u32 first_page; /* index into the page table of its binary's rows */
	u32 page_count;
	u32 first_link_page; /* its low 32 bits: code made at run time is linked where it stands */
	u32 binary;
};

#define TABLE_MAPPINGS 1024
#define TABLES 256
/* In a process's table number: a forked relative has the same table, which then is not changed in place. */
#define TABLE_SHARED (1U << 31)
#define RULES 16384

struct table {
	u32 count;
	u32 anonymous; /* id of code in none of the mappings; another where such code was replaced */
	u64 identity; /* of what follows and stands before: tables that say the same have the same */
	struct code_range code[CODE_RANGES];
	struct mapping mappings[TABLE_MAPPINGS];
};

/* SP: the stack pointer, FP: the frame pointer. */
enum rule_kind {
	RULE_NONE, /* no unwind information here */
	RULE_STACK_POINTER, /* CFA = SP + offset */
	RULE_FRAME_POINTER, /* CFA = FP + offset */
	RULE_PLT, /* CFA = SP + 8 + (pc & 15 >= offset ? 8 : 0) */
	RULE_END, /* outermost frame */
	RULE_DEREFERENCE, /* CFA = *(SP + offset) + fp_offset */
	RULE_SIGNAL, /* registers from the signal frame's ucontext */
	RULE_UNSUPPORTED,
	RULE_REALIGNED, /* CFA = *(FP + offset), and FP is at FP + fp_offset */
};

struct rule {
	u8 kind;
	u8 fp_saved; /* FP is at CFA + fp_offset; not of RULE_DEREFERENCE and RULE_REALIGNED, which say their own */
	s16 fp_offset;
	s32 offset;
};

/*
 * Where CPython keeps what a walk of its frames needs: offsets in its structs,
 * and two addresses in the process. One per mapping table.
 */
struct python {
	u64 runtime; /* _PyRuntime; 0: no Python that is known */
	u64 code_type; /* PyCode_Type: what says that an object is code */
	u16 interpreters; /* _PyRuntimeState.interpreters.head */
	u16 next_interpreter;
	u16 threads; /* PyInterpreterState.threads.head; the count of all threads ever is before it */
	u16 next_thread;
	u16 thread_id; /* pthread_self() */
	u16 current; /* the current frame, or the C frame that has it */
	u16 c_frame; /* whether it is a C frame (3.11, 3.12) */
	u16 c_frame_current;
	u16 c_frame_previous;
	u16 code; /* of a frame */
	u16 previous;
	u16 instruction;
	u16 mark; /* a byte of the frame that says where a run of frames ends: */
	u16 mark_value;
	u16 mark_is_frame; /* the marked frame is one of the run (3.11), or stands on the C stack behind it */
	u16 first_instruction; /* of a code object */
	u16 first_line;
	u16 file;
	u16 name;
	u16 line_table;
	u16 by_content; /* code objects have no number of their own: compare what they hold */
	u16 ascii_text; /* where the text of a str begins */
	u16 wide_text;
	u16 ends_seen; /* every end of a code object comes to a probe: what is known of one holds until then */
};

/* The same for Lua; one per version. */
struct lua {
	u16 status; /* of lua_State */
	u16 call;
	u16 base_call; /* 5.1: calls are an array, here is its start; else 0 */
	u16 saved_pc; /* 5.1: that of the function that runs */
	u16 call_size; /* 5.1: of an element; else 0 */
	u16 function; /* of CallInfo */
	u16 previous;
	u16 call_pc;
	u16 proto; /* of a Lua closure */
	u16 is_c; /* of a closure (5.1); else 0 */
	u16 code; /* of Proto */
	u16 lines;
	u16 line_count;
	u16 absolute; /* 5.4 and later: lines are differences, here are some that are not; else 0 */
	u16 absolute_count;
	u16 defined;
	u16 source;
	u16 current; /* LuaJIT: of global_State, the running lua_State; behind it the trace's base; else 0 */
	u16 vm_state;
	u16 short_length; /* 5.5: of a TString, negative where its text is elsewhere; else 0 */
	u16 reserved[4];
};

#define LUA_LAYOUTS 8
#define INTERPRETER_FRAMES 128
#define INTERPRETER_NAME_BYTES 256
#define INTERPRETER_FILE_BYTES 512
#define INTERPRETER_EXTRA_BYTES 1024
#define INTERPRETER_TABLE_BYTES 16384

enum interpreter_record {
	INTERPRETER_STACK,
	INTERPRETER_PYTHON, /* code whose `table` is a location table */
	INTERPRETER_LUA, /* `table`: differences of lines, `extra`: pairs of instruction and line */
	INTERPRETER_LUA_LINES, /* a frame's `where` is the line */
};

#define INTERPRETER_NO_LINE 0xffffffff

/*
 * A frame of an interpreter. `code` 0 with a place is the end of a run of
 * frames and nothing else; without, a frame that could not be told.
 */
struct interpreter_frame {
	u64 code; /* identity: hash of what the code object holds */
	u32 where; /* Python, Lua 5.4 and later: instruction; Lua 5.1-5.3, LuaJIT: line */
	u32 place; /* last of a run: where on the C stack its interpreter is, from its start, | 1; else 0 */
};

/* Records of the interpreter ring. A native stack, and the frames of interpreters that belong between its frames. */
struct interpreter_stack {
	u64 id;
	u32 kind; /* INTERPRETER_STACK */
	u32 depth;
	u64 native;
	u32 native_depth;
	u32 is_cut; /* the frames could not be read to their end */
	u32 places[MAX_FRAMES + 1]; /* of each native frame: its stack pointer, from where the stack starts */
	struct interpreter_frame frames[INTERPRETER_FRAMES];
};

/* Python: what the str object says, and as many bytes of its text; Lua: bytes up to a zero. */
struct interpreter_code {
	u64 id;
	u32 kind;
	u32 first_line;
	u32 table_bytes; /* as it is; what was copied of it ends the record */
	u32 extra_bytes;
	u32 name_length;
	u32 name_state;
	u32 file_length;
	u32 file_state;
	u8 name[INTERPRETER_NAME_BYTES];
	u8 file[INTERPRETER_FILE_BYTES];
	u8 extra[INTERPRETER_EXTRA_BYTES];
	u8 table[INTERPRETER_TABLE_BYTES];
};

/* What became of a walk. */
enum walk_outcome {
	WALK_REMEMBERED, /* all of it was remembered */
	WALK_JOINED, /* its outer part was */
	WALK_MADE,
};

/* What is counted where that is asked for (--stats), by processor. */
enum count {
	COUNT_FRAMES, /* that were walked */
	COUNT_FRAMES_JOINED, /* in outer parts that were remembered */
	COUNT_FORGOTTEN, /* walks that were joined or made and cannot be remembered */
	COUNT_INTERPRETER_WALKS,
	COUNT_INTERPRETER_FRAMES,
	COUNT_DUMPS,
	COUNT_WALKS, /* the first of those by operation and outcome */
};

#define WALK_OUTCOMES 4
#define COUNT_SLOTS (COUNT_WALKS + 16 * WALK_OUTCOMES)

/* What does not change while a trace runs. The verifier knows it, and leaves out what is not wanted. */
struct constants {
	u32 counts;
	u32 remembers; /* walks are remembered, and others end in them */
	u64 hold_ns; /* so long is a thread held at most */
	u64 look_ns; /* the same while Python looks at a binary for the first time */
	u64 block_sets; /* a power of two, or 0 */
};

/* So long may the tracer be silent while a thread is held that runs. */
#define HEARTBEAT_NS 700000000LL
/* A thread that is held and does not look for so long was stopped, or had no processor: nor had the tracer, maybe. */
#define STANDSTILL_NS 50000000LL

/* In the upper half of a cookie: of an event that all who have probes at the place have in common. */
#define OF_PLACE 0xffffffff

/* One value, mapped by both sides. A thread that is held waits until released[tid % HOLD_SLOTS] is its ticket. */
#define HOLD_SLOTS 1024
struct shared {
	u64 armed;
	u64 epoch; /* grows when a process changes; BPF's */
	u64 published; /* grows when a mapping table changes; Python's */
	u64 follow; /* forked children are traced too */
	u64 min_size; /* blocks that are kept: of at least so many bytes */
	u64 max_size;
	u64 sample_bytes; /* mean distance of the draws; 0: all blocks are kept */
	u64 pid_namespace; /* address of refleak's, where it is not the initial one */
	u64 heartbeat_ns; /* Python's, as long as it runs */
	u64 looks_until_ns; /* Python's: such a look goes on, or has just ended */
	u64 behind; /* a hold expired: nobody is held until Python, which clears this, goes on */
	u64 tracer; /* Python's pid: its end disarms */
	u64 unknown_frees; /* enum unknown_frees */
	u64 tells_heap; /* what is mapped inside of calls of the heap is told: an allocator has taken the place of libc's */
	u64 freed_sets; /* of blocks that were freed lately, a power of two; 0: none are kept */
	u64 last_generation; /* of processes that were taken out of PROCESSES: a reused pid has a later one; Python's */
	u64 counts_references; /* counted objects are looked for in blocks that are freed */
	u64 released[HOLD_SLOTS];
};

#endif
