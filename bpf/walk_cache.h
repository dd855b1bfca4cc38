// SPDX-License-Identifier: GPL-2.0
/* How much of its walks a thread remembers: see struct cached_walk. */
#ifndef REFLEAK_WALK_CACHE_SIZES_H
#define REFLEAK_WALK_CACHE_SIZES_H

#define CACHED_WALKS 8
#define CACHED_WORDS 256
#define CACHED_STRIDE 4 /* words compared between two looks at how many there are: the rest repeat the last one */
#define CACHED_REACH 8192
#define CACHED_CODES 48
#define CACHE_GUESSES 32
#define CACHED_SEGMENTS 8
#define KNOWN_FRAMES 64
#define NEAR_BYTES 1024 /* of the stack that are read at once, while it is walked */
#define TRAIL_PLACES 512
#define TRAIL_SEGMENTS 32
#define SEGMENT_GAP 1536 /* bytes between two words that are read together: a read costs as much as to copy these */

#endif
