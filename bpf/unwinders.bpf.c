// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes replace return addresses on the stack, where exceptions,
 * cancellation, backtraces and switches of the stack meet them. So the true ones
 * stand there while an unwinder runs, and the probes' again when it has ended.
 *
 * The thread writes them itself where the kernel lets it. It does not where it is
 * locked down, nor where a page is shared since a fork: then the tracer does,
 * while the thread is held.
 */

#include "abi.h"
#include "allocations.bpf.h"
#include "calls.bpf.h"
#include "ids.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"
#include "x86_64.h"

/* A return address that was put back, and is the value of the map. */
struct true_return {
	u64 slot;
	u64 tid;
};

_Static_assert(sizeof(struct true_return) == ROOM_OF_true_return, "struct true_return is not of its map's size");

enum writer { WRITES_ITSELF = 1, WRITES_BY_TRACER = 2 };

INLINE struct stack_words *words_of(u64 tid)
{
	struct stack_words *words;
	u32 key = tid;

	words = map_lookup(STACK_WORDS, &key);
	if (!words) {
		map_update(STACK_WORDS, &key, BLANK(STACK_WORDS), NOEXIST);
		words = map_lookup(STACK_WORDS, &key);
	}
	if (words)
		words->count = 0;
	return words;
}

INLINE void write_word(struct stack_words *words, u64 slot, u64 *word, int writer)
{
	u64 at = words->count;

	if (writer & WRITES_ITSELF && !bpf_probe_write_user((void *)slot, word, 8))
		return;
	MASK(at, STACK_WORDS_MAX);
	words->word[at].slot = slot;
	words->word[at].address = *word;
	words->count = at + 1;
}

/*
 * Begin: put the true return addresses back. Instances without the trampoline in
 * place are left over from frames that are gone.
 *
 * End: have the frames that are still there return to the probes again. Only where
 * the true address was put back: by itself it tells nothing, another frame may
 * have it too.
 */
struct writing {
	u64 at; /* the next return instance */
	u64 trampoline;
	u64 moment;
	u64 sp;
	struct stack_words *words;
	int writer;
	struct true_return key;
};

INLINE int write_return_turn(struct writing *writing)
{
	u64 address = 0, word = 0, *known;

	if (!writing->at)
		return 1;
	bpf_probe_read_kernel(&writing->key.slot, 8, (void *)(writing->at + INSTANCE_STACK));
	bpf_probe_read_kernel(&address, 8, (void *)(writing->at + INSTANCE_RETURN));
	bpf_probe_read_kernel(&writing->at, 8, (void *)(writing->at + INSTANCE_NEXT));
	bpf_probe_read_user(&word, 8, (void *)writing->key.slot);
	if (writing->moment == UNWINDING_BEGINS) {
		if (word == writing->trampoline && !map_update(TRUE_RETURNS, &writing->key, &address, ANY))
			write_word(writing->words, writing->key.slot, &address, writing->writer);
		return 0;
	}
	known = map_lookup(TRUE_RETURNS, &writing->key);
	if (!known || (writing->key.slot <= writing->sp && writing->moment != UNWINDING_CAUGHT))
		return 0;
	map_delete(TRUE_RETURNS, &writing->key);
	if (writing->key.slot > writing->sp && word == address)
		write_word(writing->words, writing->key.slot, &writing->trampoline, writing->writer);
	return 0;
}

INLINE void write_returns(struct stack_words *words, u64 moment, u64 sp, int writer)
{
	struct writing writing = {
		.at = first_return_instance(),
		.trampoline = trampoline_of_task(),
		.moment = moment,
		.sp = sp,
		.words = words,
		.writer = writer,
		.key = { .tid = kernel_tid() },
	};

	REPEAT(STACK_WORDS_MAX, write_return, &writing);
}

/* Whether nothing is unknown where this call ended by an exception: what it should have made was not made. */
INLINE int is_undone(struct call *call)
{
	u8 operation = call->operation;

	return operation == OP_NONE || operation == OP_CREATE || operation == OP_ALLOC || operation == OP_REALLOC ||
	       operation == OP_NAME || call->state & CALL_SETTLED;
}

struct leaving {
	struct thread *thread;
	struct calls *calls;
	u64 sp;
};

INLINE int drop_left_turn(struct leaving *leaving)
{
	struct call *call;

	if (!leaving->calls->depth)
		return 1;
	call = call_at(leaving->calls, leaving->calls->depth - 1);
	if (call->slot > leaving->sp)
		return 1;
	abandon_call(leaving->thread, call);
	if (!is_undone(call))
		lose(LOSS_PENDING_STALE);
	leaving->calls->depth--;
	return 0;
}

/* An exception has left all calls whose return address was where the handler's own first call has it, or below. */
INLINE void drop_left(u64 sp)
{
	struct thread *thread = same_thread();
	struct leaving leaving = {};
	struct pending *pending;
	struct calls *calls;
	u64 index;

	if (!thread)
		return;
	pending = &thread->pending;
	if (pending->slot && pending->slot <= sp) {
		index = pending->site;
		MASK(index, MAX_SITES);
		if (pending->had_old == OLD_TAKEN)
			keep_block(thread, pending->address, SITES->at[index].group, &pending->old);
		pending->slot = 0;
	}
	calls = calls_of(thread->tid);
	if (!calls)
		return;
	leaving.thread = thread;
	leaving.calls = calls;
	leaving.sp = sp;
	REPEAT(PENDING_DEPTH, drop_left, &leaving);
}

INLINE int unwinds(struct pt_regs *ctx, int writer)
{
	u64 wanted;
	u32 pid = current_ids() >> 32;
	struct stack_words *words;
	struct stack_request *request;

	if (!map_lookup(PROCESSES, &pid)) /* another run's, which has the same place */
		return 0;
	if (bpf_get_attach_cookie(ctx) == UNWINDING_CAUGHT)
		drop_left(STACK_POINTER(ctx));
	if (!first_return_instance())
		return 0;
	words = words_of(kernel_tid());
	if (!words)
		return 0;
	write_returns(words, bpf_get_attach_cookie(ctx), STACK_POINTER(ctx), writer);
	if (!words->count)
		return 0;
	request = writer & WRITES_BY_TRACER ? bpf_ringbuf_reserve(MAP(STACK_REQUESTS), sizeof(*request), 0) : 0;
	if (!request) {
		lose(LOSS_RETURN_HIDDEN);
		return 0;
	}
	request->ticket = new_ticket(0);
	request->pid = current_ids() >> 32;
	request->tid = kernel_tid();
	wanted = request->ticket;
	bpf_ringbuf_submit(request, WAKE_NOW);
	if (!is_released(ctx, wanted))
		lose(LOSS_RETURN_HIDDEN);
	return 0;
}

int on_unwinding(struct pt_regs *ctx)
{
	return unwinds(ctx, WRITES_ITSELF | WRITES_BY_TRACER);
}

/* For kernels that are locked down. */
int on_unwinding_held(struct pt_regs *ctx)
{
	return unwinds(ctx, WRITES_BY_TRACER);
}

/* For kernels that cannot hold. */
int on_unwinding_passing(struct pt_regs *ctx)
{
	return unwinds(ctx, WRITES_ITSELF);
}
