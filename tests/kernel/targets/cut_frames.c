/* Frames that cannot be stepped over with rsp and rbp alone. Each case leaks its own number of blocks below one. */
#define _GNU_SOURCE
#include "target.h"
#include <alloca.h>
#include <signal.h>

typedef void (*call_t)(void);

/* Each calls its argument. The stack is aligned, so that only the third register knows where the caller's frame is. */
void in_rbx(call_t call);
void in_expression(call_t call);
void rbp_in_r12(call_t call);
__asm__(".text\n"
	".type in_rbx, @function\n"
	"in_rbx:\n"
	"	.cfi_startproc\n"
	"	push	%rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbx, 0\n"
	"	mov	%rsp, %rbx\n"
	"	.cfi_def_cfa_register %rbx\n"
	"	and	$-64, %rsp\n"
	"	sub	$192, %rsp\n"
	"	call	*%rdi\n"
	"	mov	%rbx, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	pop	%rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size in_rbx, . - in_rbx\n"
	/* The CFA is r13 + 16, said by an expression, and r13 is saved where an expression says. */
	".type in_expression, @function\n"
	"in_expression:\n"
	"	.cfi_startproc\n"
	"	push	%r13\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov	%rsp, %r13\n"
	"	.cfi_escape 0x0f, 0x04, 0x7d, 0x08, 0x23, 0x08\n"	/* DW_OP_breg13 8, DW_OP_plus_uconst 8 */
	"	.cfi_escape 0x10, 0x0d, 0x03, 0x40, 0x1c, 0x96\n"	/* r13 at (CFA, lit16, minus, nop) */
	"	and	$-64, %rsp\n"
	"	sub	$192, %rsp\n"
	"	call	*%rdi\n"
	"	mov	%r13, %rsp\n"
	"	.cfi_def_cfa %rsp, 16\n"
	"	pop	%r13\n"
	"	.cfi_def_cfa_offset 8\n"
	"	.cfi_restore %r13\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size in_expression, . - in_expression\n"
	/* rbp holds something else, and r12 holds rbp: a caller that finds its frame by rbp depends on it. */
	".type rbp_in_r12, @function\n"
	"rbp_in_r12:\n"
	"	.cfi_startproc\n"
	"	push	%r12\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r12, 0\n"
	"	mov	%rbp, %r12\n"
	"	.cfi_register %rbp, %r12\n"
	"	xor	%ebp, %ebp\n"
	"	call	*%rdi\n"
	"	mov	%r12, %rbp\n"
	"	.cfi_restore %rbp\n"
	"	pop	%r12\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r12\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size rbp_in_r12, . - rbp_in_r12\n");

static NOINLINE void leak(void)
{
	kept = malloc(101);
}

/* It finds its frame by rbp. */
static NOINLINE void with_variable_frame(call_t call, size_t size)
{
	volatile char *room = alloca(size);

	room[0] = 1;
	rbp_in_r12(call);
	room[size - 1] = 1;
}

static NOINLINE void one_way(void)
{
	in_rbx(leak);
	kept = NULL;
}

static NOINLINE void other_way(void)
{
	in_rbx(leak);
	kept = NULL;
}

static NOINLINE void through_expression(void)
{
	in_expression(leak);
	kept = NULL;
}

static NOINLINE void through_all(void)
{
	in_expression(one_way);
	kept = NULL;
}

static void on_signal(int number)
{
	(void)number;
	in_rbx(leak);
}

static NOINLINE void raise_signal(void)
{
	raise(SIGUSR1);
	kept = NULL;
}

/* Words around the frames differ from call to call: numbers, or addresses on the stack. */
static NOINLINE void among_noise(int round, int addresses)
{
	volatile size_t noise[32];

	for (size_t i = 0; i < COUNT(noise); i++)
		noise[i] = addresses ? (size_t)&noise + 8 * round : round * 4099UL;
	in_rbx(leak);
	noise[0] = 1;
}

static NOINLINE void far_away(void)
{
	volatile char *room = alloca(10 * PAGE);

	room[0] = 1;
	in_rbx(leak);
	room[10 * PAGE - 1] = 1;
}

static NOINLINE void churn(void)
{
	for (int i = 0; i < 3; i++) {
		kept = malloc(103);
		if (i)
			free(kept);
	}
}

/* The same frames, elsewhere on the stack each time. */
static NOINLINE void at_depth(size_t size)
{
	volatile char *room = alloca(size);

	room[0] = 1;
	in_rbx(churn);
	room[size - 1] = 1;
}

/* An object whose making is seen at its return: meanwhile a return probe has replaced a return address. */
struct thing {
	int count;
};

NOINLINE struct thing *thing_new(void)
{
	struct thing *thing = calloc(1, sizeof(*thing));

	in_rbx(leak);
	thing->count = 1;
	return thing;
}

NOINLINE void thing_put(struct thing *thing)
{
	if (--thing->count == 0)
		free(thing);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";

	if (is(which, "ways")) {
		for (int i = 0; i < 5; i++)
			one_way();
		for (int i = 0; i < 7; i++)
			other_way();
	} else if (is(which, "expression")) {
		for (int i = 0; i < 3; i++)
			through_expression();
		through_all();
	} else if (is(which, "rbp")) {
		for (int i = 1; i < 4; i++)
			with_variable_frame(leak, 64 * i);
	} else if (is(which, "signal")) {
		signal(SIGUSR1, on_signal);
		raise_signal();
	} else if (is(which, "numbers") || is(which, "addresses")) {
		for (int i = 0; i < 3000; i++)
			among_noise(i, is(which, "addresses"));
	} else if (is(which, "depths")) {
		for (int i = 1; i <= 10; i++)
			at_depth(64 * i);
	} else if (is(which, "far")) {
		far_away();
	} else if (is(which, "return")) {
		thing_put(thing_new());
	} else {
		fail("which case?");
	}
	return 0;
}
