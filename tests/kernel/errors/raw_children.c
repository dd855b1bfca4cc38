/*
 * A child that libc's fork and vfork know nothing of, made in the way that the
 * first argument says: it frees a block twice, loses one, and frees one of its
 * maker's, which with memory in common is the only free of that one.
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define STACK (1 << 16)

static char stack[STACK] __attribute__((aligned(16)));
static void *volatile lost, *volatile of_maker;

NOINLINE static void free_twice(void *block)
{
	free(block);
	free(block);
}

NOINLINE static void lose(void)
{
	lost = malloc(77);
	lost = 0;
}

NOINLINE static void *make(void)
{
	return malloc(600);
}

NOINLINE static void release(void)
{
	free(of_maker);
}

NOINLINE int in_child(void *unused)
{
	lose();
	release();
	free_twice(malloc(100));
	_exit(0);
}

/* The number in a variable, as in a program that makes calls of a table. */
static volatile long number = SYS_clone;

/* With memory in common the child goes on with a stack of its own. */
NOINLINE static int shared_by_number(void)
{
	register long fourth asm("r10") = 0, fifth asm("r8") = 0;
	long result = number;

	asm volatile("syscall\n"
		     "test %%rax, %%rax\n"
		     "jnz 1f\n"
		     "xor %%edi, %%edi\n"
		     "call in_child\n"
		     "1:"
		     : "+a"(result)
		     : "D"(CLONE_VM | SIGCHLD), "S"(stack + STACK), "d"(0), "r"(fourth), "r"(fifth)
		     : "rcx", "r11", "memory");
	return result;
}

NOINLINE static int by_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

NOINLINE static int by_clone3(uint64_t flags)
{
	struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};

	return syscall(SYS_clone3, &arguments, sizeof(arguments));
}

NOINLINE static int by_instruction(void)
{
	register long fourth asm("r10") = 0, fifth asm("r8") = 0;
	long result = SYS_clone;

	asm volatile("syscall"
		     : "+a"(result)
		     : "D"(SIGCHLD), "S"(0), "d"(0), "r"(fourth), "r"(fifth)
		     : "rcx", "r11", "memory");
	return result;
}

static int make_child(const char *how)
{
	if (!strcmp(how, "shared-by-number"))
		return shared_by_number();
	if (!strcmp(how, "clone"))
		return by_clone();
	if (!strcmp(how, "clone3"))
		return by_clone3(0);
	if (!strcmp(how, "instruction"))
		return by_instruction();
	if (!strcmp(how, "function"))
		return clone(in_child, stack + STACK, SIGCHLD, 0);
	if (!strcmp(how, "shared"))
		return clone(in_child, stack + STACK, CLONE_VM | SIGCHLD, 0);
	if (!strcmp(how, "waited-for"))
		return clone(in_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, 0);
	return -1;
}

int main(int count, char **arguments)
{
	int status, child;

	of_maker = make();
	child = make_child(arguments[1]);
	if (child == 0)
		in_child(0);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 3;
	if (!strstr("shared-by-number waited-for", arguments[1]))
		release();
	return 0;
}
