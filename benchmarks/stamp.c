/*
 * A library to preload: the program named STAMP_NAME appends to STAMP_FILE a line
 * "PID NS" before its main and another when it ends, by the monotonic clock. So
 * a load's own time is told from what a tracer spends before and after it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void stamp(void)
{
	const char *name = getenv("STAMP_NAME"), *file = getenv("STAMP_FILE");
	struct timespec time;
	char line[64];
	int length, fd;

	if (!name || !file || strcmp(name, program_invocation_short_name))
		return;
	clock_gettime(CLOCK_MONOTONIC, &time);
	length = snprintf(line, sizeof(line), "%d %lld\n", getpid(), time.tv_sec * 1000000000LL + time.tv_nsec);
	fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
	if (fd < 0 || write(fd, line, length) != length)
		return;
	close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	stamp();
}

__attribute__((destructor)) static void end(void)
{
	stamp();
}
