/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * refleak.h: reference counts that refleak can trace, for C and C++.
 *
 *	struct conn { int refs; ... };
 *
 *	refcnt__init(conn, refs, 1);		the creator holds one reference
 *	refcnt__get(conn, refs);		one more
 *	if (refcnt__put(conn, refs)) {		true for who put the last one
 *		refcnt__delete(conn);
 *		free(conn);
 *	}
 *
 * The type of an object in a report is how its creator spells it ("conn" here);
 * refcnt__init_as(conn, refs, 1, "connection") gives another name.
 * refcnt__get_by(conn, refs, holder) and refcnt__put_by(conn, refs, holder) say
 * who holds the reference (any pointer): a get that was never put is then known
 * exactly, not guessed.
 *
 * The counter is any 4-byte integer: int, unsigned, _Atomic int, std::atomic<int>,
 * or a struct around one. `member` may be a path, as in `base.refs`.
 *
 * With -DREFLEAK_DISABLE all of it is the bare atomic operation.
 */
#ifndef REFLEAK_H
#define REFLEAK_H

#if defined(REFLEAK_DISABLE)
#define REFLEAK_STUB static inline __attribute__((__always_inline__, __unused__))
#elif defined(__cplusplus)
#define REFLEAK_STUB extern "C" __attribute__((__visibility__("default"), __nothrow__))
#else
#define REFLEAK_STUB extern __attribute__((__visibility__("default"), __nothrow__))
#endif

REFLEAK_STUB void __refcnt__init(int *refcnt, int n, void *obj, const char *name);
REFLEAK_STUB void __refcnt__get(int *refcnt, void *obj, const char *name);
/* Return nonzero where the count has reached zero. */
REFLEAK_STUB int __refcnt__put(int *refcnt, void *obj, const char *name);
REFLEAK_STUB void __refcnt__get_by(int *refcnt, void *obj, const char *name, const void *holder);
REFLEAK_STUB int __refcnt__put_by(int *refcnt, void *obj, const char *name, const void *holder);
/* End all counters of an object; call it before its memory is released. */
REFLEAK_STUB void refcnt__delete(void *obj);

/* Through void *, since a counter may be of any 4-byte type; the array's size refuses all others. */
#define REFLEAK_COUNTER(refleak_obj, member)				\
	((void)sizeof(char[sizeof((refleak_obj)->member) == sizeof(int) ? 1 : -1]), \
	 (int *)(void *)&(refleak_obj)->member)

/* Statement expressions, so that `obj` is evaluated once. */
#define refcnt__init_as(obj, member, n, name)				\
	__extension__({ __typeof__(obj) refleak_o = (obj);		\
		__refcnt__init(REFLEAK_COUNTER(refleak_o, member), n, (void *)refleak_o, name); })
#define refcnt__init(obj, member, n) refcnt__init_as(obj, member, n, #obj)
#define refcnt__get(obj, member)					\
	__extension__({ __typeof__(obj) refleak_o = (obj);		\
		__refcnt__get(REFLEAK_COUNTER(refleak_o, member), (void *)refleak_o, #obj); })
#define refcnt__put(obj, member)					\
	__extension__({ __typeof__(obj) refleak_o = (obj);		\
		__refcnt__put(REFLEAK_COUNTER(refleak_o, member), (void *)refleak_o, #obj); })
#define refcnt__get_by(obj, member, holder)				\
	__extension__({ __typeof__(obj) refleak_o = (obj);		\
		__refcnt__get_by(REFLEAK_COUNTER(refleak_o, member), (void *)refleak_o, #obj, holder); })
#define refcnt__put_by(obj, member, holder)				\
	__extension__({ __typeof__(obj) refleak_o = (obj);		\
		__refcnt__put_by(REFLEAK_COUNTER(refleak_o, member), (void *)refleak_o, #obj, holder); })

#if defined(REFLEAK_DISABLE) || defined(REFLEAK_PORTABLE) || defined(__SANITIZE_THREAD__)
#define REFLEAK_IN_C
#elif !defined(__x86_64__) || !defined(__LP64__) || !defined(__ELF__)
#define REFLEAK_IN_C
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REFLEAK_IN_C
#endif
#endif

#if !defined(REFLEAK_IN_C)

/*
 * The stubs in assembly: a probe reads the argument registers at one of the
 * first three instructions. On a nop of one byte it costs one trap; on one of the
 * others none where the kernel makes a call of it: Linux 6.18 of 5 bytes, 7.2 of
 * 10. refleak uses these only where forked children live on with such a call:
 * with that of 6.18 they do not. A compiler would put endbr64, a frame or a
 * profiling call first, clone the function, or drop arguments that it proves
 * unused.
 *
 * Weak and in a COMDAT group each: one copy in a program, however many files
 * include this, and through .dynsym one for the libraries too. .ifndef: link
 * time optimisation joins the assembly of many files. Instructions as bytes:
 * the file may be compiled with -masm=intel.
 */
#define REFLEAK_ASSEMBLE(name, instructions)				\
	__asm__(".ifndef .Lrefleak_has" #name "\n"			\
		".set .Lrefleak_has" #name ", 1\n"			\
		".pushsection .text.refleak." #name ", \"axG\", @progbits, " #name ", comdat\n" \
		".p2align 4, 0x90\n"					\
		".weak " #name "\n"					\
		".type " #name ", @function\n"				\
		#name ":\n"						\
		".cfi_startproc\n"					\
		".byte 0x90\n"						\
		".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"			\
		".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"	\
		instructions						\
		".byte 0xc3\n"						\
		".cfi_endproc\n"					\
		".size " #name ", . - " #name "\n"			\
		".popsection\n"						\
		".endif\n")

#define REFLEAK_STORE ".byte 0x89, 0x37\n"		/* mov %esi, (%rdi) */
#define REFLEAK_INCREMENT ".byte 0xf0, 0xff, 0x07\n"	/* lock incl (%rdi) */
#define REFLEAK_DECREMENT ".byte 0x31, 0xc0\n"		/* xor %eax, %eax */	\
			  ".byte 0xf0, 0xff, 0x0f\n"	/* lock decl (%rdi) */	\
			  ".byte 0x0f, 0x94, 0xc0\n"	/* sete %al */

REFLEAK_ASSEMBLE(__refcnt__init, REFLEAK_STORE);
REFLEAK_ASSEMBLE(__refcnt__get, REFLEAK_INCREMENT);
REFLEAK_ASSEMBLE(__refcnt__put, REFLEAK_DECREMENT);
REFLEAK_ASSEMBLE(__refcnt__get_by, REFLEAK_INCREMENT);
REFLEAK_ASSEMBLE(__refcnt__put_by, REFLEAK_DECREMENT);
REFLEAK_ASSEMBLE(refcnt__delete, "");

#else

/*
 * The stubs in C: other architectures, the thread sanitizer (which must see the
 * atomics), REFLEAK_DISABLE, and who asks for it with -DREFLEAK_PORTABLE. The empty asm reads every argument, so that
 * none is optimised away at the callers.
 */
#if defined(REFLEAK_DISABLE)
#define REFLEAK_BODY REFLEAK_STUB
#define REFLEAK_KEEP(obj, name, holder) ((void)(obj), (void)(name), (void)(holder))
#else
#if defined(__clang__)
#define REFLEAK_BODY REFLEAK_STUB __attribute__((__weak__, __used__, __noinline__))
#else
#define REFLEAK_BODY REFLEAK_STUB __attribute__((__weak__, __used__, __noipa__))
#endif
#define REFLEAK_KEEP(obj, name, holder) __asm__ volatile("" : : "r"(obj), "r"(name), "r"(holder) : "memory")
#endif

REFLEAK_BODY void __refcnt__init(int *refcnt, int n, void *obj, const char *name)
{
	REFLEAK_KEEP(obj, name, n);
	__atomic_store_n(refcnt, n, __ATOMIC_RELAXED);
}

REFLEAK_BODY void __refcnt__get(int *refcnt, void *obj, const char *name)
{
	REFLEAK_KEEP(obj, name, 0);
	__atomic_fetch_add(refcnt, 1, __ATOMIC_RELAXED);
}

REFLEAK_BODY int __refcnt__put(int *refcnt, void *obj, const char *name)
{
	REFLEAK_KEEP(obj, name, 0);
	return __atomic_sub_fetch(refcnt, 1, __ATOMIC_ACQ_REL) == 0;
}

REFLEAK_BODY void __refcnt__get_by(int *refcnt, void *obj, const char *name, const void *holder)
{
	REFLEAK_KEEP(obj, name, holder);
	__atomic_fetch_add(refcnt, 1, __ATOMIC_RELAXED);
}

REFLEAK_BODY int __refcnt__put_by(int *refcnt, void *obj, const char *name, const void *holder)
{
	REFLEAK_KEEP(obj, name, holder);
	return __atomic_sub_fetch(refcnt, 1, __ATOMIC_ACQ_REL) == 0;
}

REFLEAK_BODY void refcnt__delete(void *obj)
{
	REFLEAK_KEEP(obj, 0, 0);
}

#endif
#endif
