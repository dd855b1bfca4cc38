/*
 * Create objects, get and put them at RATE events per second for SECONDS, or until SIGTERM.
 * usage: paced RATE SECONDS
 * Prints its pid when it begins and the events per second that it made at the end: it issues
 * what is due each millisecond, and falls behind where that takes longer.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../examples/refleak.h"

#define GETS 3
#define EVENTS_EACH (2 + 2 * GETS)	/* create, gets, puts of those, the last put */
#define OBJECTS 64

struct session {
	int refs;
};

static struct session sessions[OBJECTS];
static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((noinline)) static void serve(struct session *session)
{
	refcnt__init(session, refs, 1);
	for (int i = 0; i < GETS; i++)
		refcnt__get(session, refs);
	for (int i = 0; i < GETS + 1; i++)
		refcnt__put(session, refs);
}

int main(int argc, char **argv)
{
	long long begin, end, wake, made = 0;
	double rate;

	if (argc != 3)
		return 2;
	rate = atof(argv[1]);
	signal(SIGTERM, stop);
	printf("%d\n", getpid());
	fflush(stdout);
	begin = wake = now();
	end = begin + (long long)(atof(argv[2]) * 1e9);
	while (!stopped && wake < end) {
		struct timespec due;

		while (made < (now() - begin) * rate / 1e9 && !stopped && now() < end) {
			for (int i = 0; i < 8; i++)
				serve(&sessions[(made / EVENTS_EACH + i) % OBJECTS]);
			made += 8 * EVENTS_EACH;
		}
		wake += 1000000;
		if (wake < now())
			wake = now();
		due.tv_sec = wake / 1000000000LL;
		due.tv_nsec = wake % 1000000000LL;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	printf("%.0f\n", made / ((now() - begin) / 1e9));
	return 0;
}
