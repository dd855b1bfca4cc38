// SPDX-License-Identifier: GPL-2.0
/* Which blocks are kept: decided by their size alone, before any stack is walked. */
#ifndef REFLEAK_SELECTION_H
#define REFLEAK_SELECTION_H

#include "draws.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "verifier.h"

/* Count a block that was made; returns whether it is to be kept. `is_drawn_before`: its process has decided by a draw. */
INLINE int block_made(struct thread *thread, u64 size, int is_drawn_before)
{
	u64 mean = SHARED->sample_bytes;

	thread->totals.made++;
	thread->totals.made_bytes += size;
	if (size < SHARED->min_size || size > SHARED->max_size)
		return 0;
	return !mean || is_drawn_before || is_drawn(&thread->draws, size, mean);
}

#endif
