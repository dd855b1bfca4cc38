// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of processes and threads as refleak's own pid namespace has them: user
 * space knows no others. NAMESPACE_LEVEL is how deep that is below the initial
 * one. 0 is the number of whoever is not visible from there.
 *
 * Not bpf_get_ns_current_pid_tgid: it knows only those whose own namespace it is,
 * and none of a container within.
 */
#ifndef REFLEAK_IDS_H
#define REFLEAK_IDS_H

#include "maps.bpf.h"
#include "verifier.h"

INLINE u64 read_word(u64 address)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, 8, (void *)address);
	return value;
}

INLINE u32 read_half(u64 address)
{
	u32 value = 0;

	bpf_probe_read_kernel(&value, 4, (void *)address);
	return value;
}

/* The kernel's own number of the current thread: a key of what no one else asks for. */
INLINE u32 kernel_tid(void)
{
	return bpf_get_current_pid_tgid();
}

#if NAMESPACE_LEVEL

#define TGID_TYPE 1 /* PIDTYPE_TGID of enum pid_type */

struct number { /* struct upid */
	u32 number;
	u32 padding;
	u64 namespace;
};

INLINE u32 visible_number(u64 pid)
{
	struct number number = {};

	if (read_half(pid + PID_LEVEL) < NAMESPACE_LEVEL)
		return 0;
	bpf_probe_read_kernel(&number, sizeof(number), (void *)(pid + PID_NUMBERS + NAMESPACE_LEVEL * sizeof(number)));
	return number.namespace == SHARED->pid_namespace ? number.number : 0;
}

/* The process of a task. */
INLINE u32 pid_of(u64 task)
{
	return visible_number(read_word(read_word(task + TASK_SIGNAL) + SIGNAL_PIDS + 8 * TGID_TYPE));
}

/* The current thread's process in the upper half, the thread in the lower. */
INLINE u64 current_ids(void)
{
	u64 task = bpf_get_current_task();

	return (u64)pid_of(task) << 32 | visible_number(read_word(task + TASK_THREAD_PID));
}

#else

INLINE u32 pid_of(u64 task)
{
	return read_half(task + TASK_TGID);
}

INLINE u64 current_ids(void)
{
	return bpf_get_current_pid_tgid();
}

#endif
#endif
