// SPDX-License-Identifier: GPL-2.0
/* How much is remembered of walks: see struct cached_walk. */
#ifndef REFLEAK_WALK_CACHE_SIZES_H
#define REFLEAK_WALK_CACHE_SIZES_H

#define CACHED_WALKS 2048
#define CACHED_WORDS 256
#define CACHED_STRIDE 4 /* words compared between two looks at how many there are: the rest repeat the last one */
#define CACHED_STRIDES 4 /* compared in a turn of a loop */
#define NEAR_WORDS_IN_LINE 128
#define CACHED_REACH 8192
#define CACHED_CODES 48
#define CACHED_SEGMENTS 8
#define FIRST_CALLERS 2 /* that tell walks from one place apart, before words are compared, */
#define FURTHER_CALLERS 8 /* and those where that was not enough */
#define KNOWN_FRAMES 512 /* two for each hash */
#define NEAR_BYTES 8192 /* of the stack that are read at once at most, */
#define NEAR_BYTES_LEAST 512
#define NEAR_BYTES_WALKING 1024 /* and while it is walked */
#define TRAIL_PLACES 512
#define TRAIL_SEGMENTS 32
#define SEGMENT_GAP 1536 /* bytes between two words that are read together: a read costs as much as to copy these */

#endif
