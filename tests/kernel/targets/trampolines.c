/*
 * Code without unwind table and without frame pointers, as the trampolines of `python3 -X perf`, named in a perf map. Each
 * calls a function that leaks; what follows the call says where its own return address is, or does not. See main.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include "target.h"

#define DISTANCE 64	/* from one function to the next */
#define CODE(...) (const unsigned char[]){ __VA_ARGS__ }, sizeof((const unsigned char[]){ __VA_ARGS__ })

#define CALL 0xff, 0xd1				/* call *%rcx: the fourth argument */
#define CALL_INNER 0xff, 0xd2			/* call *%rdx: the third */
#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define PUSH_RBX 0x53
#define POP_RBX 0x5b
#define MOVE_RSP_TO_RBP 0x48, 0x89, 0xe5
#define CLEAR_RBP 0x31, 0xed
#define SUB(bytes) 0x48, 0x83, 0xec, bytes	/* from %rsp */
#define ADD(bytes) 0x48, 0x83, 0xc4, bytes
#define STORE_AT_RSP 0x48, 0xc7, 0x04, 0x24, 0, 0x10, 0, 0
#define INT3 0xcc
#define NOP 0x90
#define LEAVE 0xc9
#define RET 0xc3

struct trampoline;
typedef void (*function)(size_t);
typedef void (*entry)(size_t, long, struct trampoline *, function);

static char *room;
static int map;
static jmp_buf before;

static entry make_at(char *place, const char *name, const unsigned char *code, size_t size)
{
	char line[100];
	int length = snprintf(line, sizeof(line), "%lx %zx %s\n", (unsigned long)place, size, name);

	memcpy(place, code, size);
	if (write(map, line, length) != length)
		fail("no map");
	return (entry)place;
}

static entry make(const char *name, const unsigned char *code, size_t size)
{
	entry made = make_at(room, name, code, size);

	room += DISTANCE;
	return made;
}

static NOINLINE void leak(size_t size)
{
	kept = malloc(size);
}

static NOINLINE void leak_and_jump(size_t size)
{
	kept = malloc(size);
	longjmp(before, 1);
}

static void on_signal(int number)
{
	(void)number;
	leak(331);
}

static NOINLINE void interrupted(size_t size)
{
	kept = malloc(size);
	raise(SIGUSR1);
}

static NOINLINE void run(entry code, size_t count, size_t size)
{
	for (size_t i = 0; i < count; i++)
		code(size, 0, NULL, leak);
}

/* Its own frame is found by rbp. */
static NOINLINE void run_with_array(entry code, size_t count, size_t size)
{
	char array[count];

	kept = array;
	for (size_t i = 0; i < count; i++)
		code(size, 0, NULL, leak);
}

static NOINLINE void run_jumping(entry code, volatile size_t count, size_t size)
{
	while (count--)
		if (!setjmp(before))
			code(size, 0, NULL, leak_and_jump);
}

static NOINLINE void run_interrupted(entry code)
{
	code(337, 0, NULL, interrupted);
}

static NOINLINE void run_trapped(entry code)
{
	code(0, 0, NULL, NULL);
}

/*
 * The inner one is replaced by one with a frame of 16 bytes more, and is called by another one that has 16 bytes less: every
 * word of the stack that the walk reads is the same, and what is left of the return address that the inner one had, too.
 */
static NOINLINE void run_replaced(entry inner, entry outer_one, entry outer_two)
{
	for (int i = 0; i < 11 + 13; i++) {
		if (i == 11)
			memcpy((void *)inner, CODE(SUB(24), CALL, ADD(24), RET));
		(i < 11 ? outer_one : outer_two)(347, 0, (struct trampoline *)inner, leak);
	}
}

int main(void)
{
	entry plain, with_rbp, with_leave, with_registers, not_straight, never_returned, at_the_end, trapped, inner, one, two;
	char path[40];
	char *end;

	room = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end = room + 2 * PAGE;
	if (mprotect(end, PAGE, PROT_NONE))
		fail("mprotect failed");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	plain = make("plain", CODE(SUB(8), CALL, ADD(8), RET));
	with_rbp = make("with rbp", CODE(PUSH_RBP, MOVE_RSP_TO_RBP, CALL, POP_RBP, RET));
	with_leave = make("with leave", CODE(PUSH_RBP, MOVE_RSP_TO_RBP, SUB(32), CALL, LEAVE, RET));
	with_registers = make("with registers",
			      CODE(PUSH_RBP, PUSH_RBX, SUB(8), CLEAR_RBP, CALL, ADD(8), POP_RBX, POP_RBP, RET));
	not_straight = make("not straight", CODE(PUSH_RBP, CLEAR_RBP, CALL, NOP, POP_RBP, RET));
	never_returned = make("never returned", CODE(PUSH_RBP, CLEAR_RBP, SUB(16), STORE_AT_RSP, CALL, RET));
	trapped = make("trapped", CODE(SUB(8), INT3, ADD(8), RET));
	inner = make("inner", CODE(SUB(8), CALL, ADD(8), RET));
	one = make("outer one", CODE(SUB(24), CALL_INNER, ADD(24), RET));
	two = make("outer two", CODE(SUB(8), CALL_INNER, ADD(8), RET));
	at_the_end = make_at(end - 11, "at the end", CODE(SUB(8), CALL, ADD(8), RET));
	dlclose(dlopen("libm.so.6", RTLD_NOW));	/* a tracer that holds it there has read the map */
	signal(SIGUSR1, on_signal);
	signal(SIGTRAP, on_signal);
	run(plain, 11, 307);
	run(with_rbp, 13, 311);
	run(with_leave, 17, 313);
	run_with_array(with_registers, 19, 317);
	run(not_straight, 3, 349);
	run_jumping(never_returned, 5, 353);
	run(at_the_end, 7, 359);
	run_interrupted(plain);
	run_trapped(trapped);
	run_replaced(inner, one, two);
	unlink(path);
	return 0;
}
