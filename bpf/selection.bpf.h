// SPDX-License-Identifier: GPL-2.0
/* Which blocks are kept: decided by their size alone, before any stack is walked. */
#ifndef REFLEAK_SELECTION_H
#define REFLEAK_SELECTION_H

/*
 * Whether a byte of the block is drawn: of probability 1 - exp(-size / mean),
 * and independent of all other blocks, since the exponential distribution has
 * no memory: after a block that was not drawn, what is left of the distance is
 * distributed as the whole was, and after one that was, another is taken.
 * A block of 0 bytes counts as 1, as it could not be drawn at all.
 */
INLINE int is_drawn(struct thread *thread, u64 size, u64 mean)
{
	size += !size;
	if (!thread->next_draw)
		thread->next_draw = bytes_to_draw(&thread->draw, mean);
	if (thread->next_draw > size) {
		thread->next_draw -= size;
		return 0;
	}
	thread->next_draw = 0;
	return 1;
}

/* Count a block that was made; returns whether it is to be kept. */
INLINE int block_made(struct thread *thread, u64 size)
{
	u64 mean = SHARED->sample_bytes;

	thread->totals.made++;
	thread->totals.made_bytes += size;
	if (size < SHARED->min_size || size > SHARED->max_size)
		return 0;
	return !mean || is_drawn(thread, size, mean);
}

#endif
