/* Says "ready" and waits for a signal; at SIGTERM, SIGINT and SIGHUP says which and exits with 40 + its number. */
#include "target.h"
#include <signal.h>

static void on_signal(int number)
{
	say(number == SIGTERM ? "SIGTERM\n" : number == SIGINT ? "SIGINT\n" : "SIGHUP\n");
	_exit(40 + number);
}

int main(void)
{
	const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (int i = 0; i < 3; i++)
		kept = malloc(37);
	for (size_t i = 0; i < COUNT(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	say("ready\n");
	for (;;)
		pause();
}
