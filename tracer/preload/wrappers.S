/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The library of --preload: the malloc family, passed on to the next one, with
 * nops where probes are put.
 *
 * A probe on a nop of 10 bytes costs no trap where the kernel can make a call of
 * it. One behind the real call sees the result, the size and, on top of
 * the stack, the caller's return address: no return probe is needed, and no frame
 * of this library is in the stack of a block. Hence assembly.
 *
 * refleak puts its probes at the functions refleak_begin_*, refleak_made_* and
 * refleak_dropped_*. Without them all of this is a call more, and after refleak
 * has ended too.
 *
 * With REFLEAK_SAMPLE_BYTES only blocks that are drawn come to such a place
 * (sampling.c).
 */

	.macro ENDBR
	.byte	0xf3, 0x0f, 0x1e, 0xfa
	.endm

	.macro BEGIN name
	.text
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	ENDBR
	.endm

	.macro END name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* To be found in the handle of a library by dlsym, in place of the real one. */
	.macro WRAPPER name
	BEGIN	\name
	.globl	refleak_wrapper_\name
	.hidden	refleak_wrapper_\name
	.set	refleak_wrapper_\name, \name
	.endm

	/*
	 * A place for a probe, for the cheaper nop: Linux 7.2 makes a call of that of 10 bytes, and all emulate that of 1.
	 * Not one of 5 bytes, of which 6.18 makes a call into a page that forked children do not have: one that runs on
	 * before its own probes are in place crashes there. It is found as a function that ends where PLACED says.
	 */
	.macro PLACE name
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.byte	0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	.byte	0x90
	.endm

	.macro PLACED name
	.size	\name, . - \name
	.endm

	.macro SAVE register
	push	\register
	.cfi_adjust_cfa_offset 8
	.endm

	.macro RESTORE register
	pop	\register
	.cfi_adjust_cfa_offset -8
	.endm

	/* Calls are made with the stack at a multiple of 16, and it is at one and a half when a function begins. */
	.macro ALIGN_STACK
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.endm

	.macro ALIGNED_STACK
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.endm

	/* The next function of a name; until it is known, this looks for all of them. */
	.macro NEXT name
	.data
	.p2align 3
	.globl	refleak_next_\name
	.hidden	refleak_next_\name
	.type	refleak_next_\name, @object
	.size	refleak_next_\name, 8
refleak_next_\name:
	.quad	refleak_first_\name
	.globl	refleak_first_\name
	.hidden	refleak_first_\name
	BEGIN	refleak_first_\name
	SAVE	%rdi
	SAVE	%rsi
	SAVE	%rdx
	call	refleak_look
	RESTORE	%rdx
	RESTORE	%rsi
	RESTORE	%rdi
	jmp	*refleak_next_\name(%rip)
	END	refleak_first_\name
	.endm

	NEXT	malloc
	NEXT	calloc
	NEXT	realloc
	NEXT	reallocarray
	NEXT	free
	NEXT	memalign
	NEXT	aligned_alloc
	NEXT	posix_memalign
	NEXT	valloc
	NEXT	pvalloc
	NEXT	dlsym
	NEXT	dlopen

	/* Tells that the program runs with this library, before anything else does. */
	.text
	.p2align 4
	PLACE	refleak_preloaded
	.cfi_startproc
	ret
	END	refleak_preloaded

#ifdef REFLEAK_SAMPLE_BYTES
	/* Count the bytes of a block down, and go to `other` unless it is drawn. A block of 0 bytes counts as 1. */
	.macro DRAW other
	mov	refleak_countdown@gottpoff(%rip), %rcx
	mov	%rsi, %r8
	cmp	$1, %r8
	adc	$0, %r8
	sub	%r8, %fs:(%rcx)
	jg	\other
	SAVE	%rax
	SAVE	%rdi
	SAVE	%rsi
	SAVE	%rdx
	ALIGN_STACK
	call	refleak_draw
	mov	%eax, %ecx
	ALIGNED_STACK
	RESTORE	%rdx
	RESTORE	%rsi
	RESTORE	%rdi
	RESTORE	%rax
	test	%ecx, %ecx
	je	\other
	.endm

	/* Go to `other` with a block that was not drawn. The filter is a byte for all blocks of a hash. */
	.macro UNLESS_DRAWN other
	mov	%rdi, %rax
	shr	$4, %rax
	mov	%rax, %rcx
	shr	$16, %rcx
	xor	%ecx, %eax
	movzwl	%ax, %eax
	lea	refleak_filter(%rip), %rcx
	cmpb	$0, (%rcx, %rax)
	je	\other
	SAVE	%rdi
	SAVE	%rsi
	ALIGN_STACK
	call	refleak_take
	ALIGNED_STACK
	RESTORE	%rsi
	RESTORE	%rdi
	test	%eax, %eax
	je	\other
	.endm
#endif

	/* The end of a function that made a block: %rdi is the block, %rsi its size, %rdx its alignment. */
	.macro MADE name
#ifdef REFLEAK_SAMPLE_BYTES
	DRAW	2f
#endif
	PLACE	refleak_made_\name
2:	ret
	PLACED	refleak_made_\name
	.endm

	.macro ONE_ARGUMENT name
	WRAPPER	\name
	SAVE	%rdi
	call	*refleak_next_\name(%rip)
	RESTORE	%rsi
	mov	%rax, %rdi
	MADE	\name
	END	\name
	.endm

	ONE_ARGUMENT malloc
	ONE_ARGUMENT valloc
	ONE_ARGUMENT pvalloc

	.macro TWO_ARGUMENTS name
	WRAPPER	\name
	SAVE	%rdi
	SAVE	%rsi
	ALIGN_STACK
	call	*refleak_next_\name(%rip)
	ALIGNED_STACK
	RESTORE	%rsi
	RESTORE	%rdx
	mov	%rax, %rdi
	.endm

	TWO_ARGUMENTS memalign
	MADE	memalign
	END	memalign

	TWO_ARGUMENTS aligned_alloc
	MADE	aligned_alloc
	END	aligned_alloc

	TWO_ARGUMENTS calloc
	imul	%rdx, %rsi
	MADE	calloc
	END	calloc

	WRAPPER	posix_memalign
	SAVE	%rdi
	SAVE	%rdx
	SAVE	%rsi
	call	*refleak_next_posix_memalign(%rip)
	RESTORE	%rdx
	RESTORE	%rsi
	RESTORE	%rdi
	test	%eax, %eax
	jne	2f
	mov	(%rdi), %rdi
	MADE	posix_memalign
	END	posix_memalign

	WRAPPER	free
#ifdef REFLEAK_SAMPLE_BYTES
	UNLESS_DRAWN refleak_pass_free
#endif
	PLACE	refleak_begin_free
	jmp	*refleak_next_free(%rip)
	PLACED	refleak_begin_free
#ifdef REFLEAK_SAMPLE_BYTES
refleak_pass_free:
	jmp	*refleak_next_free(%rip)
#endif
	END	free

	/* The block in %rdi gets the size in %rsi. */
	.macro REALLOCATE name
#ifdef REFLEAK_SAMPLE_BYTES
	UNLESS_DRAWN refleak_pass_\name
	PLACE	refleak_begin_\name
	SAVE	%rdi
	SAVE	%rsi
	ALIGN_STACK
	call	*refleak_next_realloc(%rip)
	PLACED	refleak_begin_\name
	ALIGNED_STACK
	RESTORE	%rsi
	RESTORE	%rdx
	mov	%rax, %rdi
	test	%rax, %rax
	jne	3f
	test	%rsi, %rsi
	je	4f
	SAVE	%rax
	mov	%rdx, %rdi
	call	refleak_put	/* it failed, and the block is as it was */
	RESTORE	%rax
	jmp	4f
3:	DRAW	4f
	jmp	refleak_made_\name
4:	PLACE	refleak_dropped_\name
	ret
	PLACED	refleak_dropped_\name
refleak_pass_\name:
#else
	PLACE	refleak_begin_\name
#endif
	SAVE	%rsi
	call	*refleak_next_realloc(%rip)
#ifndef REFLEAK_SAMPLE_BYTES
	PLACED	refleak_begin_\name
#endif
	RESTORE	%rsi
	mov	%rax, %rdi
	MADE	\name
	.endm

	WRAPPER	realloc
	REALLOCATE realloc
	END	realloc

	/* As glibc does it: realloc, unless the product is too large. */
	WRAPPER	reallocarray
	mov	%rsi, %rax
	mov	%rdx, %rcx
	mul	%rcx
	jo	5f
	mov	%rax, %rsi
	REALLOCATE reallocarray
5:	mov	%rcx, %rdx
	jmp	*refleak_next_reallocarray(%rip)
	END	reallocarray

	/* Where the answer depends on the caller, it must be seen: a jump. */
	WRAPPER	dlsym
	lea	1(%rdi), %rax
	cmp	$1, %rax
	ja	1f
	jmp	*refleak_next_dlsym(%rip)
1:	jmp	refleak_given
	END	dlsym

	/* RTLD_DEEPBIND: what is loaded so finds libc's functions before these. */
	WRAPPER	dlopen
	test	$8, %esi
	je	1f
	PLACE	refleak_deep_bound
1:	jmp	*refleak_next_dlopen(%rip)
	PLACED	refleak_deep_bound
	END	dlopen

	/* Indirect branches end at endbr64, and returns go where calls came from (GNU_PROPERTY_X86_FEATURE_1_AND). */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0

	.section .note.GNU-stack, "", @progbits
