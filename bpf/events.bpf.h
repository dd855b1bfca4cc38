// SPDX-License-Identifier: GPL-2.0
/* The event ring: one record of one size for each thing that happened. */
#ifndef REFLEAK_EVENTS_H
#define REFLEAK_EVENTS_H

#include "abi.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

/* Reserve and stamp a record; NULL if the ring is full, which is counted. */
INLINE struct event *new_event(struct thread *thread, u8 operation, u64 address)
{
	struct event *event = bpf_ringbuf_reserve(MAP(EVENTS), sizeof(*event), 0);

	if (!event) {
		lose(LOSS_EVENTS_FULL);
		return 0;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->operation = operation;
	event->address = address;
	event->pid = thread->pid;
	event->generation = thread->generation;
	event->tid = thread->tid;
	event->site = thread->intent.site;
	thread->totals.events++;
	return event;
}

INLINE void send_event(struct event *event)
{
	bpf_ringbuf_submit(event, WAKE_NEVER);
}

#endif
