/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included at the end of tools/include/linux/refcount.h: sends every operation
 * on a refcount_t through the four stubs, with no call site touched. The type
 * of an object is how its creator spells the counter, e.g. "&maps->refcnt".
 */
#ifndef REFLEAK_REFCOUNT_STUBS_H
#define REFLEAK_REFCOUNT_STUBS_H

void __refcnt__init(atomic_t *refcnt, int n, void *obj, const char *name);
/* Returns 0 where the count was zero already, which refcount_inc_not_zero needs. */
int __refcnt__get(atomic_t *refcnt, void *obj, const char *name);
int __refcnt__put(atomic_t *refcnt, void *obj, const char *name);
void refcnt__delete(void *obj);

#define refcount_set(r, n) __refcnt__init(&(r)->refs, n, r, #r)
#define refcount_inc(r) ((void)__refcnt__get(&(r)->refs, r, #r))
#define refcount_dec_and_test(r) (__refcnt__put(&(r)->refs, r, #r) != 0)
/* A zero count is tested first, since a get of a dead object would be an error. */
#define refcount_inc_not_zero(r) (refcount_read(r) != 0 && __refcnt__get(&(r)->refs, r, #r) != 0)

#endif
