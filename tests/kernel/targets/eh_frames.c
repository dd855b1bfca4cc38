/*
 * A JIT that tells the C++ runtime of its code, by __register_frame. Its functions keep neither a frame pointer nor a plain
 * end behind their call; only the registered table says where their callers are.
 *   eh_frames [info]          at one address: 11 x 307 below run_first, another function: 13 x 311 below run_second, and
 *                             3 x 313 below run_last once it is no longer registered; with "info" by __register_frame_info
 *   eh_frames fork            the same, and between the first and the second a child: 7 x 317 below run_child
 *   eh_frames many N          N functions, each registered by itself; leaks 11 x 307 through the last below run_first
 *   eh_frames again N         one, registered and taken back N times before
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "target.h"

#define FUNCTION_BYTES 16
#define TABLE_BYTES 64

void __register_frame(void *begin);
void __deregister_frame(void *begin);
void __register_frame_info(void *begin, void *object);
void *__deregister_frame_info(void *begin);

typedef void *(*entry)(size_t, long, long, void *(*)(size_t));

static int by_info;
static long object[16];

/* push %rbp; sub $bytes, %rsp; xor %ebp, %ebp; call *%rcx; nop; add $bytes, %rsp; pop %rbp; ret */
static entry make_code(char *place, unsigned char bytes)
{
	const unsigned char code[FUNCTION_BYTES] = {
		0x55, 0x48, 0x83, 0xec, bytes, 0x31, 0xed, 0xff, 0xd1, 0x90, 0x48, 0x83, 0xc4, bytes, 0x5d, 0xc3,
	};

	memcpy(place, code, sizeof(code));
	return (entry)place;
}

/* An .eh_frame of this one function, of records of 20, 28 and no bytes. */
static void make_table(char *place, const char *code, unsigned char bytes)
{
	unsigned char table[TABLE_BYTES] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,	/* version, augmentation, pc-relative */
		0x0c, 7, 8, 0x90, 1, 0, 0, 0,			/* CFA = rsp + 8, return address at CFA - 8 */
	};
	const unsigned char program[] = {
		0,						/* no augmentation data */
		0x41, 0x0e, 16, 0x86, 2,			/* after push: CFA = rsp + 16, rbp at CFA - 16 */
		0x44, 0x0e, 16 + bytes,				/* after sub */
		0x49, 0x0e, 16, 0x41, 0x0e, 8,			/* after add, after pop */
	};
	int relative = (int)(code - (place + 32));

	table[24] = 28;
	table[28] = 28;						/* back to the common record */
	memcpy(table + 32, &relative, 4);
	table[36] = FUNCTION_BYTES;
	memcpy(table + 40, program, sizeof(program));
	memcpy(place, table, sizeof(table));
}

static void tell(void *table)
{
	if (by_info)
		__register_frame_info(table, object);
	else
		__register_frame(table);
}

static void take_back(void *table)
{
	if (by_info)
		__deregister_frame_info(table);
	else
		__deregister_frame(table);
}

static NOINLINE void run_first(entry code)
{
	for (int i = 0; i < 11; i++)
		kept = code(307, 0, 0, malloc);
}

static NOINLINE void run_second(entry code)
{
	for (int i = 0; i < 13; i++)
		kept = code(311, 0, 0, malloc);
}

static NOINLINE void run_last(entry code)
{
	for (int i = 0; i < 3; i++)
		kept = code(313, 0, 0, malloc);
}

static NOINLINE void run_child(entry code)
{
	for (int i = 0; i < 7; i++)
		kept = code(317, 0, 0, malloc);
}

static void *room_of(size_t bytes, int protection)
{
	void *room = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		fail("no memory");
	return room;
}

static long nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Print what one registration took. */
static void say_time(long began, int count)
{
	char line[64];

	snprintf(line, sizeof(line), "%ld ns\n", (nanoseconds() - began) / count);
	say(line);
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 1, status;
	char *code = room_of(count * FUNCTION_BYTES + 1, PROT_READ | PROT_WRITE | PROT_EXEC);
	char *tables = room_of(count * TABLE_BYTES, PROT_READ | PROT_WRITE);
	long began = nanoseconds();
	entry made = NULL;
	pid_t child;

	by_info = argc == 2 && is(argv[1], "info");
	if (argc == 3) {
		int again = is(argv[1], "again");

		for (int i = 0; i < count; i++) {
			int at = again ? 0 : i;

			made = make_code(code + at * FUNCTION_BYTES, 16);
			make_table(tables + at * TABLE_BYTES, (char *)made, 16);
			tell(tables + at * TABLE_BYTES);
			if (again && i < count - 1)
				take_back(tables);
		}
		say_time(began, count);
		run_first(made);
		return 0;
	}
	made = make_code(code, 16);
	make_table(tables, code, 16);
	tell(tables);
	run_first(made);
	child = argc == 2 && is(argv[1], "fork") ? fork() : getpid();
	if (child == 0) {
		run_child(made);
		_exit(0);
	}
	if (child != getpid() && (child < 0 || waitpid(child, &status, 0) != child || status))
		fail("the child failed");
	take_back(tables);
	make_code(code, 48);
	make_table(tables, code, 48);
	tell(tables);
	run_second(made);
	take_back(tables);
	run_last(made);
	return 0;
}
