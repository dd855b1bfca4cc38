/* Stubs that begin with a nop of 5 bytes, used by the parent and by each child of fork() and of the bare system call.
 * Prints how many children did not end as they should. */
#include "target.h"
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUB(name, instructions)                                                                                       \
	asm(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"               \
	    ".cfi_startproc\n.byte 0x0f, 0x1f, 0x44, 0, 0\n" instructions "ret\n.cfi_endproc\n"                        \
	    ".size " #name ", . - " #name "\n.popsection\n")

STUB(__refcnt__init, "movl %esi, (%rdi)\n");
STUB(__refcnt__get, "lock incl (%rdi)\n");
STUB(__refcnt__put, "xorl %eax, %eax\nlock decl (%rdi)\nsete %al\n");

void __refcnt__init(int *counter, int n, void *object, const char *name);
void __refcnt__get(int *counter, void *object, const char *name);
int __refcnt__put(int *counter, void *object, const char *name);

static int counter;

static NOINLINE void use(int times)
{
	while (times--) {
		__refcnt__get(&counter, &counter, "thing");
		__refcnt__put(&counter, &counter, "thing");
	}
}

int main(void)
{
	int status, bad = 0;

	__refcnt__init(&counter, 1, &counter, "thing");
	use(101);
	for (int i = 0; i < 6; i++) {
		pid_t child = i % 2 ? (pid_t)syscall(SYS_fork) : fork();

		if (!child) {
			use(7);
			_exit(0);
		}
		waitpid(child, &status, 0);
		bad += status != 0;
		use(3);
	}
	printf("%d\n", bad);
	return bad != 0;
}
