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

/* A return address that was put back, and is the value of the map. */
struct true_return {
	u64 slot;
	u64 tid;
};

enum writer { WRITES_ITSELF = 1, WRITES_BY_TRACER = 2 };

INLINE struct stack_words *words_of(u64 tid)
{
	struct stack_words *words;
	u32 key = tid;

	words = find(MAP(STACK_WORDS), &key);
	if (!words) {
		put(MAP(STACK_WORDS), &key, VALUE(struct stack_words, BLANK_CALLS), NOEXIST);
		words = find(MAP(STACK_WORDS), &key);
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
INLINE void write_returns(struct stack_words *words, u64 moment, u64 sp, int writer)
{
	u64 at = first_return_instance();
	u64 trampoline = trampoline_of_task();
	struct true_return key = { .tid = (u32)bpf_get_current_pid_tgid() };
	u64 address, word, *known;

#pragma unroll 1
	for (int i = 0; i < STACK_WORDS_MAX; i++) {
		if (!at)
			return;
		bpf_probe_read_kernel(&key.slot, 8, (void *)(at + INSTANCE_STACK));
		bpf_probe_read_kernel(&address, 8, (void *)(at + INSTANCE_RETURN));
		bpf_probe_read_kernel(&at, 8, (void *)(at + INSTANCE_NEXT));
		word = 0;
		bpf_probe_read_user(&word, 8, (void *)key.slot);
		if (moment == UNWINDING_BEGINS) {
			if (word != trampoline || put(MAP(TRUE_RETURNS), &key, &address, ANY))
				continue;
			write_word(words, key.slot, &address, writer);
			continue;
		}
		known = find(MAP(TRUE_RETURNS), &key);
		if (!known || (key.slot <= sp && moment != UNWINDING_CAUGHT))
			continue;
		drop(MAP(TRUE_RETURNS), &key);
		if (key.slot > sp && word == address)
			write_word(words, key.slot, &trampoline, writer);
	}
}

/* Like wait_for_release, but it looks each 0.3 ms: this is short work, and many may ask for it. */
INLINE int wait_for_words(struct pt_regs *ctx, u64 wanted)
{
	u64 slot = (u32)bpf_get_current_pid_tgid(), here = ctx->ip;
	volatile u64 *released;
	void *task;

	MASK(slot, HOLD_SLOTS);
	released = &SHARED->released[slot];
	BARRIER(released);
	BARRIER(here);
#pragma unroll 1
	for (u64 i = 0; i < WORD_TURNS; i++) {
		if (*released == wanted)
			return 1;
#pragma unroll
		for (int j = 0; j < WORD_READS; j++)
			bpf_probe_read_user(VALUE(void, DELAY), DELAY_BYTES, NOWHERE);
		task = (void *)bpf_get_current_task_btf();
		bpf_copy_from_user_task(VALUE(void, DELAY), 1, (void *)here, task, 0);
	}
	return 0;
}

/* Whether nothing is unknown where this call ended by an exception: what it should have made was not made. */
INLINE int is_undone(struct call *call)
{
	u8 operation = call->operation;

	return operation == OP_NONE || operation == OP_CREATE || operation == OP_ALLOC || operation == OP_REALLOC ||
	       operation == OP_NAME || call->state & CALL_SETTLED;
}

/* An exception has left all calls whose return address was where the handler's own first call has it, or below. */
INLINE void drop_left(u64 sp)
{
	struct thread *thread = same_thread();
	struct pending *pending;
	struct calls *calls;
	u64 index;

	if (!thread)
		return;
	pending = &thread->pending;
	if (pending->slot && pending->slot <= sp) {
		index = pending->site;
		MASK(index, MAX_SITES);
		if (pending->had_old == 1)
			keep_block(thread, pending->address, SITES->site[index].group, &pending->old);
		pending->slot = 0;
	}
	calls = calls_of(thread->tid);
	if (!calls)
		return;
#pragma unroll 1
	for (int i = 0; i < PENDING_DEPTH; i++) {
		struct call *call;

		if (!calls->depth)
			return;
		call = call_at(calls, calls->depth - 1);
		if (call->slot > sp)
			return;
		abandon_call(thread, call);
		if (!is_undone(call))
			lose(LOSS_PENDING_STALE);
		calls->depth--;
	}
}

INLINE int unwinds(struct pt_regs *ctx, int writer)
{
	u64 id = bpf_get_current_pid_tgid(), wanted;
	struct stack_words *words;
	struct stack_request *request;

	if (bpf_get_attach_cookie(ctx) == UNWINDING_CAUGHT)
		drop_left(ctx->sp);
	if (!first_return_instance())
		return 0;
	words = words_of((u32)id);
	if (!words)
		return 0;
	write_returns(words, bpf_get_attach_cookie(ctx), ctx->sp, writer);
	if (!words->count)
		return 0;
	request = writer & WRITES_BY_TRACER ? bpf_ringbuf_reserve(MAP(STACK_REQUESTS), sizeof(*request), 0) : 0;
	if (!request) {
		lose(LOSS_RETURN_HIDDEN);
		return 0;
	}
	request->ticket = bpf_ktime_get_ns();
	request->pid = id >> 32;
	request->tid = id;
	wanted = request->ticket;
	bpf_ringbuf_submit(request, WAKE_NOW);
	if (!wait_for_words(ctx, wanted))
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
