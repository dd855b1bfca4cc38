// SPDX-License-Identifier: GPL-2.0
/* Processes come and go: fork, exec, exit; and the moments when one of them is held. */

#include "abi.h"
#include "ids.bpf.h"
#include "interpreters.bpf.h"
#include "maps.bpf.h"
#include "x86_64.h"
#include "threads.bpf.h"
#include "verifier.h"

struct tracepoint {
	u64 argument[3];
};

INLINE struct control *new_control(u16 kind, u32 pid)
{
	struct control *control = bpf_ringbuf_reserve(MAP(CONTROL), sizeof(*control), 0);

	if (!control) {
		lose(LOSS_CONTROL_FULL);
		return 0;
	}
	__builtin_memset(control, 0, sizeof(*control));
	control->time_ns = bpf_ktime_get_ns();
	control->kind = kind;
	control->pid = pid;
	control->tid = kernel_tid();
	return control;
}

INLINE void next_epoch(void)
{
	__sync_fetch_and_add((u64 *)&SHARED->epoch, 1);
}

/* A forked child goes on where its maker is: in the same calls of an interpreter. */
INLINE void copy_interpreter(u32 child)
{
	struct interpreter *interpreter = interpreter_of(current_ids());

	if (interpreter)
		map_update(INTERPRETERS, &child, interpreter, ANY);
}

int on_fork(struct tracepoint *ctx)
{
	u64 parent_task = ctx->argument[0], child_task = ctx->argument[1];
	u32 parent = pid_of(parent_task), child = pid_of(child_task);
	struct process *forker = map_lookup(PROCESSES, &parent);
	struct process process = {};
	struct process *before;
	struct control *control;
	u32 *table, zero = 0;
	int shares;

	if (!forker || parent == child || forker->state != PROCESS_TRACED || !SHARED->armed || !SHARED->follow)
		return 0;
	shares = read_word(parent_task + TASK_MM) == read_word(child_task + TASK_MM);
	before = map_lookup(PROCESSES, &child);
	process.started_ns = bpf_ktime_get_ns();
	process.parent = parent;
	process.state = PROCESS_TRACED;
	process.own_generation = (before ? before->own_generation : SHARED->last_generation) + 1;
	process.space = shares ? forker->space : child;
	process.is_copy = shares ? forker->is_copy : 1;
	process.generation = shares ? forker->generation : process.own_generation;
	process.source = shares ? forker->source : forker->space;
	process.is_preloaded = forker->is_preloaded;
	if (!shares && (s32)read_half(read_word(parent_task + TASK_SIGNAL) + SIGNAL_LIVE) == 1)
		process.alone_ns = process.started_ns;
	process.source_generation = shares ? forker->source_generation : forker->generation;
	table = map_lookup(TABLE_OF, &forker->space);
	if (table && !shares)
		*table |= TABLE_SHARED;
	map_update(TABLE_OF, &child, table ? table : &zero, ANY);
	if (!shares)
		copy_interpreter(child);
	if (map_update(PROCESSES, &child, &process, ANY))
		lose(LOSS_PROCESSES_FULL);
	if (!shares)
		forker->forked_ns = process.started_ns;
	next_epoch();
	control = new_control(CONTROL_FORK, child);
	if (control) {
		control->fork.parent = parent;
		control->fork.parent_generation = forker->generation;
		control->fork.shares_memory = shares;
		control->generation = process.generation;
		control->time_ns = process.started_ns;
		bpf_ringbuf_submit(control, WAKE_NOW);
	}
	return 0;
}

int on_exec(struct tracepoint *ctx)
{
	u64 id = current_ids();
	u32 pid = id >> 32, tid = id, key = kernel_tid(), no_table = 0;
	struct process *process = map_lookup(PROCESSES, &pid);
	struct thread *thread = map_lookup(THREADS, &key);
	struct control *control;

	if (!process)
		return 0;
	map_delete(CALLS, &tid);
	map_delete(INTERPRETERS, &tid);
	map_delete(DUMP_OF, &tid);
	if (thread) {
		flush_totals(thread);
		map_delete(THREADS, &key);
	}
	process->own_generation++;
	process->generation = process->own_generation;
	process->space = pid;
	process->state = PROCESS_TRACED;
	process->forked_ns = 0;
	process->is_copy = 0;
	process->is_preloaded = 0;
	process->first_ended = 0;
	process->source = 0;
	map_update(TABLE_OF, &pid, &no_table, ANY);
	next_epoch();
	control = new_control(CONTROL_EXEC, pid);
	if (control) {
		control->generation = process->generation;
		bpf_probe_read_kernel_str(control->path, sizeof(control->path),
					  (void *)read_word(ctx->argument[2] + BPRM_FILENAME));
		bpf_ringbuf_submit(control, WAKE_NOW);
	}
	return 0;
}

/* Breakpoints may be kept by what was opened for this thread. */
INLINE void thread_ended(struct process *process, u32 pid, u32 tid)
{
	struct control *control;

	if (!process || (tid != pid && !process->first_ended))
		return;
	process->first_ended = 1;
	control = new_control(CONTROL_THREAD_ENDED, pid);
	if (control) {
		control->generation = process->generation;
		bpf_ringbuf_submit(control, WAKE_NOW);
	}
}

#define SIGNAL_IN_CODE 0x7f /* wait(2): not zero where a signal ended it */
#define SIGNAL_GROUP_EXIT 4 /* linux/sched/signal.h: all threads end */

int on_exit(struct tracepoint *ctx)
{
	u64 id = current_ids();
	u64 task = ctx->argument[0], signal;
	u32 pid = id >> 32, tid = id, key = kernel_tid(), code;
	struct process *process = map_lookup(PROCESSES, &pid);
	struct thread *thread = map_lookup(THREADS, &key);
	struct control *control;

	map_delete(CALLS, &tid);
	map_delete(INTERPRETERS, &tid);
	map_delete(DUMP_OF, &tid);
	if (thread) {
		struct pending *pending = &thread->pending;
		u64 index = pending->site;

		MASK(index, MAX_SITES);
		if (pending->slot && pending->had_old == OLD_TAKEN) /* killed inside realloc: its block was alive */
			keep_block(thread, pending->address, SITES->at[index].group, &pending->old);
		flush_totals(thread);
		map_delete(THREADS, &key);
	}
	if (pid != (u32)SHARED->tracer && (!process || process->state == PROCESS_ENDED))
		return 0;
	code = read_half(task + TASK_EXIT_CODE);
	signal = read_word(task + TASK_SIGNAL);
	/*
	 * Before the kernel closes its links, each of which waits for those that are held. A signal ends all threads,
	 * and one of them may be waiting for the same; so the first that it ends disarms.
	 */
	if (pid == (u32)SHARED->tracer && ((code & SIGNAL_IN_CODE) || (s32)read_half(signal + SIGNAL_LIVE) <= 0))
		SHARED->armed = 0;
	if ((s32)read_half(signal + SIGNAL_LIVE) > 0) {
		if (!(read_half(signal + SIGNAL_FLAGS) & SIGNAL_GROUP_EXIT))
			thread_ended(process, pid, tid);
		return 0;
	}
	if (!process)
		return 0;
	process->state = PROCESS_ENDED;
	code = read_half(signal + SIGNAL_GROUP_EXIT_CODE) ?: code;
	control = new_control(CONTROL_EXIT, pid);
	if (control) {
		control->wait_status = code;
		control->generation = process->generation;
		bpf_ringbuf_submit(control, WAKE_NOW);
	}
	return 0;
}

/*
 * Whether a thread that was held now would be released: else it had better go on
 * at once. A heartbeat that is old tells nothing to one who loses something by
 * that: both may have been stopped (Ctrl-Z), or the machine stood still, and the
 * thread was faster. It waits for the next one.
 */
INLINE int tracer_answers(int may_expire)
{
	if (SHARED->behind)
		return 0;
	return !may_expire || (s64)(bpf_ktime_get_ns() - SHARED->heartbeat_ns) <= HEARTBEAT_NS;
}

/* Whether the tracer has been silent for too long while this thread was looking for its release. */
INLINE int is_silent(struct hold *hold, u64 now)
{
	u64 beat = SHARED->heartbeat_ns;

	if (now - hold->turned_ns > STANDSTILL_NS)
		hold->silent_ns = now;
	hold->turned_ns = now;
	return (s64)(now - hold->silent_ns) > HEARTBEAT_NS && (s64)(now - beat) > HEARTBEAT_NS;
}

/*
 * Wait until a ticket, which is the time when it was made, is released; count it
 * where that took too long. Where the trace has ended nothing is lost.
 *
 * The thread sleeps in no queue and gets no signal: it goes round this loop,
 * whose helper reschedules, until its ticket is released, its time is up, the
 * tracer's heartbeat stops, or the loop is at its end. So it goes on by itself,
 * whatever becomes of the tracer, and nobody can see that it waited. Reads that
 * fail take the time: they fill DELAY with zeros, whatever the target has in
 * memory. Tail calls, for more turns, are denied to sleepable programs. It
 * looks for its release more often than it reschedules: that takes the lock of
 * its memory, which the tracer wants, and a thread that has to wait for a
 * processor there keeps it. The clock tells when, not the turns: where these
 * are slow, whoever sleeps and wakes many times, as the tracer does that reads
 * files, would wait for some tens of them each time.
 *
 * All that a turn needs is in a map, nothing is read from the stack after the
 * loop, and the loop does not become part of the program, as the verifier makes
 * it where it knows that the flags are 0: from 6.13 on programs had one stack
 * per processor, which another thread that was held there overwrote. None has
 * by now (OWN_STACK in tracer/kernel/linking.py). A test looks at the code.
 */
#define NOWHERE ((void *)-1)
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define MAY_EXPIRE 1ULL /* in a ticket: nothing is lost by a maker, or a process that ends, that goes on too early */

INLINE u64 new_ticket(int may_expire)
{
	return (bpf_ktime_get_ns() & ~MAY_EXPIRE) | (may_expire ? MAY_EXPIRE : 0);
}

/* Look whether the thread is released, else let some time pass. */
INLINE int hold_turn(void)
{
	u32 tid = kernel_tid();
	u64 slot = tid, now = bpf_ktime_get_ns(), code;
	struct hold *hold = map_lookup(HOLDS, &tid);
	void *task;

	MASK(slot, HOLD_SLOTS);
	if (!hold || SHARED->released[slot] == hold->ticket || !SHARED->armed)
		return 1;
	if (now - hold->ticket > (now < SHARED->looks_until_ns ? CONSTANTS->look_ns : CONSTANTS->hold_ns) ||
	    is_silent(hold, now))
		return 1;
	code = hold->code;
#pragma unroll
	for (int j = 0; j < HOLD_READS; j++)
		bpf_probe_read_user(VALUE(DELAY), sizeof(*VALUE(DELAY)), NOWHERE);
	if (now - hold->rescheduled_ns < RESCHEDULE_NS)
		return 0;
	hold->rescheduled_ns = now;
	task = (void *)bpf_get_current_task_btf();
	bpf_copy_from_user_task(VALUE(DELAY), 1, (void *)code, task, 0);
	return 0;
}

/* A thread went on before the tracer was ready for it, and the next ones had better not wait for it either. */
INLINE void hold_expired(void)
{
	lose(LOSS_HOLD_EXPIRED);
	SHARED->behind = 1;
}

/* Wait as long as a hold may last; returns 0 where it was not released, and the trace goes on. */
INLINE int is_released(struct pt_regs *ctx, u64 wanted)
{
	u32 tid = kernel_tid();
	struct hold *kept;
	u64 slot;
	int released = 1;

	map_update(HOLDS, &tid, BLANK(HOLDS), ANY);
	kept = map_lookup(HOLDS, &tid);
	if (!kept)
		return 0;
	kept->ticket = wanted;
	kept->silent_ns = kept->turned_ns = bpf_ktime_get_ns();
	kept->code = PROGRAM_COUNTER(ctx);
	bpf_loop_of(HOLD_TURNS, (void *)TURN_hold, 0, kept->no_flags);
	tid = kernel_tid();
	slot = tid;
	MASK(slot, HOLD_SLOTS);
	kept = map_lookup(HOLDS, &tid);
	if (kept && SHARED->released[slot] != kept->ticket && SHARED->armed && !(kept->ticket & MAY_EXPIRE))
		released = 0;
	map_delete(HOLDS, &tid);
	return released;
}

INLINE void wait_for_release(struct pt_regs *ctx, u64 wanted)
{
	if (!is_released(ctx, wanted))
		hold_expired();
}

/*
 * Bring a program's path into memory, whose page the process may never have
 * touched: that of a literal. A read of a string does not do that, a copy does;
 * with the page behind it only if the string goes on there.
 */
INLINE void touch_path(u64 path)
{
	bpf_copy_from_user(VALUE(DELAY), 1, (void *)path);
	if (bpf_probe_read_user_str(VALUE(DELAY), PATH_BYTES, (void *)path) < 0)
		bpf_copy_from_user(VALUE(DELAY), 1, (void *)(path + PATH_BYTES - 1));
}

/* The thread that ends its process, as it stands there: what it alone still points at is in its registers and above
 * its stack pointer. */
INLINE void note_ending(struct pt_regs *ctx, struct control *control)
{
	_Static_assert(sizeof(*ctx) == sizeof(control->ending.registers), "the registers are others");
	bpf_probe_read_kernel(control->ending.registers, sizeof(*ctx), ctx);
	control->ending.thread = control->thread;
}

/*
 * Hold the current thread until the tracer is ready for it.
 *
 * The attach cookie is the kind in its low byte; the rest is the distance from
 * the probed instruction to _r_debug.r_state for the loader, to
 * __jit_debug_descriptor for a JIT; 1 for a fork whose maker is held there too.
 */
INLINE int hold(struct pt_regs *ctx)
{
	u64 id = current_ids();
	s64 cookie = bpf_get_attach_cookie(ctx);
	u32 pid = id >> 32;
	u16 kind = cookie & 255;
	struct process *process = map_lookup(PROCESSES, &pid);
	struct control *control;
	u64 wanted, path, second;
	int may_expire;

	if (!process || process->state != PROCESS_TRACED || !SHARED->armed)
		return 0;
	if (kind == CONTROL_FORKED && RETURN_VALUE(ctx)) { /* not in the child */
		if (!(cookie >> 8) || (s64)RETURN_VALUE(ctx) < 0)
			return 0;
		kind = CONTROL_FORKS;
	}
	if (kind == CONTROL_ENDING && process->space != pid)
		return 0; /* a vfork child, in its parent's memory */
	if ((kind == CONTROL_LEAVES || kind == CONTROL_FORKED) && pid != (u32)id)
		return 0; /* clone() makes threads too */
	if (kind == CONTROL_DISPATCHES &&
	    (FIRST_ARGUMENT(ctx) != PR_SET_SYSCALL_USER_DISPATCH || !SECOND_ARGUMENT(ctx)))
		return 0;
	if (kind == CONTROL_LOADER && cookie >> 8) {
		u32 state = 0;

		bpf_probe_read_user(&state, sizeof(state), (void *)(PROGRAM_COUNTER(ctx) + (cookie >> 8)));
		if (state)
			return 0; /* not yet consistent */
	}
	control = new_control(kind, pid);
	if (!control)
		return 0;
	control->generation = process->generation;
	control->thread = current_ids();
	cookie = bpf_get_attach_cookie(ctx); /* again, rather than kept on the stack */
	kind = control->kind;
	path = FIRST_ARGUMENT(ctx);
	second = SECOND_ARGUMENT(ctx);
	BARRIER(path);
	BARRIER(second);
	if (kind == CONTROL_FRAMES || kind == CONTROL_FRAMES_GONE)
		control->frames = path;
	if (kind == CONTROL_JIT)
		control->descriptor = PROGRAM_COUNTER(ctx) + (cookie >> 8);
	if (kind == CONTROL_EXECUTES_AT)
		path = second;
	if (kind == CONTROL_EXECUTES || kind == CONTROL_EXECUTES_AT)
		bpf_probe_read_user_str(control->path, sizeof(control->path), (void *)path);
	if (kind == CONTROL_ENDING)
		note_ending(ctx, control);
	may_expire = kind == CONTROL_FORKS || kind == CONTROL_ENDING;
	if (!tracer_answers(may_expire)) {
		bpf_ringbuf_submit(control, WAKE_NOW);
		if (!may_expire)
			lose(LOSS_HOLD_EXPIRED);
		return 0;
	}
	wanted = new_ticket(may_expire);
	control->ticket = wanted;
	bpf_ringbuf_submit(control, WAKE_NOW);
	wait_for_release(ctx, wanted);
	return 0;
}

/*
 * The copies of touch_path() may sleep: nothing that was on the stack before them
 * is used after them. So it is not asked whose process this is, which takes
 * more than registers: the system call to come reads the same page.
 */
int on_hold(struct pt_regs *ctx)
{
	u16 kind = bpf_get_attach_cookie(ctx) & 255;
	u64 path = FIRST_ARGUMENT(ctx), second = SECOND_ARGUMENT(ctx);

	BARRIER(path);
	BARRIER(second);
	if (kind == CONTROL_EXECUTES_AT)
		path = second;
	BARRIER(path);
	if (kind == CONTROL_EXECUTES || kind == CONTROL_EXECUTES_AT)
		touch_path(path);
	BARRIER(ctx);
	return hold(ctx);
}
