// SPDX-License-Identifier: GPL-2.0
/* How much of its walks a thread remembers: see struct memo. */
#ifndef REFLEAK_WALK_CACHE_SIZES_H
#define REFLEAK_WALK_CACHE_SIZES_H

#define MEMOS 8
#define MEMO_WORDS 256
#define MEMO_STRIDE 4 /* words compared between two looks at how many there are: the rest repeat the last one */
#define MEMO_REACH 8192
#define MEMO_TAILS 48
#define MEMO_GUESSES 32
#define MEMO_SEGMENTS 8
#define TRAIL_PLACES 512
#define TRAIL_SEGMENTS 32
#define SEGMENT_GAP 1536 /* bytes between two words that are read together: a read costs as much as to copy these */

#endif
