/* What every target needs: functions that stay functions, and a handshake. No stdio: its buffer would be one block more. */
#ifndef TARGET_H
#define TARGET_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((__noinline__, __noclone__))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PAGE 4096UL

/* What is stored here has escaped: the compiler may not drop its allocation. */
extern void *volatile kept;
void *volatile kept __attribute__((__weak__));

static inline void say(const char *line)
{
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		_exit(4);
}

/* Wait for one byte; return 0 at end of file. */
static inline int await_byte(void)
{
	char byte;
	ssize_t got;

	do
		got = read(STDIN_FILENO, &byte, 1);
	while (got < 0 && errno == EINTR);
	return got == 1;
}

static inline void ready(void)
{
	say("ready\n");
	await_byte();
}

static inline void fail(const char *why)
{
	if (write(STDERR_FILENO, why, strlen(why)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(4);
	_exit(3);
}

static inline int is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

#endif
