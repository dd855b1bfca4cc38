/*
 * A JIT that writes a perf map. Twice it makes a function at one address, says so in /tmp/perf-PID.map, and leaks through
 * the function: 11 x 307 by "first", 13 x 311 by "second one". Then it deletes the map. Before and after each line it opens
 * and closes a library, where a tracer may hold it: what it does in between is then known to be after the one line and
 * before the other. With "hurried" it does not before the second: nobody can know which function the first leaks were in.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include "target.h"

/* push %rbp; mov %rsp, %rbp; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; nop; pop %rbp; ret: only rbp tells the caller */
static const unsigned char code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x90, 0x5d, 0xc3,
};

typedef void *(*function)(void *(*)(size_t), size_t);

static int map;

static void pause_for_tracer(void)
{
	dlclose(dlopen("libm.so.6", RTLD_NOW));
}

static function make(char *room, const char *name)
{
	char line[100];
	int length = snprintf(line, sizeof(line), "%lx %zx %s\n", (unsigned long)room, sizeof(code), name);

	memcpy(room, code, sizeof(code));
	if (write(map, line, length) != length)
		fail("no map");
	pause_for_tracer();
	return (function)room;
}

static NOINLINE void run_first(function call)
{
	for (int i = 0; i < 11; i++)
		kept = call(malloc, 307);
}

static NOINLINE void run_second(function call)
{
	for (int i = 0; i < 13; i++)
		kept = call(malloc, 311);
}

int main(int argc, char **argv)
{
	char path[40];
	char *room = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	run_first(make(room, "first"));
	if (argc == 1 || !is(argv[1], "hurried"))
		pause_for_tracer();
	run_second(make(room, "second one"));
	unlink(path);
	return 0;
}
