/* 13 blocks allocated in a signal handler. */
#include "target.h"
#include <signal.h>

static volatile int handled;

static NOINLINE void leak_in_handler(void)
{
	kept = malloc(131);
}

static void on_alarm(int number)
{
	leak_in_handler();
	handled += number;
}

static NOINLINE void raise_alarm(void)
{
	raise(SIGALRM);
	kept = NULL;
}

int main(void)
{
	signal(SIGALRM, on_alarm);
	for (int i = 0; i < 13; i++)
		raise_alarm();
	return handled == 13 * SIGALRM ? 0 : 3;
}
