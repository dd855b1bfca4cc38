// SPDX-License-Identifier: GPL-2.0
/*
 * The four stubs for perf, over perf's own saturating counters. Each begins
 * with nops of 1, 5 and 10 bytes, as those of examples/refleak.h do; assembly,
 * since perf keeps frame pointers and a compiler would put their push first.
 */
#include <linux/refcount.h>

#define STUB(name)					\
	asm(".text\n"					\
	    ".p2align 4\n"				\
	    ".globl " #name "\n"			\
	    ".type " #name ", @function\n"		\
	    #name ":\n"					\
	    ".cfi_startproc\n"				\
	    ".byte 0x90\n"				\
	    ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"	\
	    ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"	\
	    "jmp perf" #name "\n"			\
	    ".cfi_endproc\n"				\
	    ".size " #name ", . - " #name "\n")

void perf__refcnt__init(refcount_t *r, int n);
int perf__refcnt__get(refcount_t *r);
int perf__refcnt__put(refcount_t *r);
void perfrefcnt__delete(void *obj);

STUB(__refcnt__init);
STUB(__refcnt__get);
STUB(__refcnt__put);
STUB(refcnt__delete);

/* The counter is the only member of a refcount_t, so the addresses are the same. */
__attribute__((__noinline__, __used__)) void perf__refcnt__init(refcount_t *r, int n)
{
	(refcount_set)(r, n);
}

__attribute__((__noinline__, __used__)) int perf__refcnt__get(refcount_t *r)
{
	return (refcount_inc_not_zero)(r);
}

__attribute__((__noinline__, __used__)) int perf__refcnt__put(refcount_t *r)
{
	return (refcount_dec_and_test)(r);
}

__attribute__((__noinline__, __used__)) void perfrefcnt__delete(void *obj __attribute__((__unused__)))
{
}
