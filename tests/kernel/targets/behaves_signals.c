/* One behaviour with signals each: says at its end what it counted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "behaves.h"

static volatile sig_atomic_t seen;
static sigjmp_buf back;
static ucontext_t caller, routine;

static void count(int number)
{
	(void)number;
	seen++;
}

static void jump(int number)
{
	siglongjmp(back, number);
}

static void on(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigaction(number, &action, NULL);
}

/* Allocates until so many signals of the timer have come. */
static void storm(int timer, int number, int signals, int period_us)
{
	struct itimerval period = {{0, period_us}, {0, period_us}}, none = {{0, 0}, {0, 0}};

	on(number, count, SA_RESTART);
	setitimer(timer, &period, NULL);
	while (seen < signals)
		free(malloc(61));
	setitimer(timer, &none, NULL);
	printf("%d signals at least\n", signals);
}

static void alarm_storm(void)
{
	storm(ITIMER_REAL, SIGALRM, 211, 300);
}

static void profile_timer(void)
{
	storm(ITIMER_PROF, SIGPROF, 53, 1000);
}

static void alternate_stack(void)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&stack, NULL);
	on(SIGUSR1, count, SA_ONSTACK);
	for (int i = 0; i < 307; i++)
		raise(SIGUSR1);
	printf("%d on the other stack\n", (int)seen);
}

static void recover(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int faults = 0;

	on(SIGSEGV, jump, 0);
	while (faults < 103) {
		if (sigsetjmp(back, 1) == 0)
			*(volatile char *)page = 1;
		free(malloc(71));
		faults++;
	}
	printf("%d faults\n", faults);
}

static void own_traps(void)
{
	on(SIGTRAP, count, 0);
	for (int i = 0; i < 109; i++)
		__asm__ volatile("int3");
	printf("%d traps\n", (int)seen);
}

static void undefined_instruction(void)
{
	on(SIGILL, jump, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("ud2");
	puts("went on");
}

static void coroutine(void)
{
	for (int i = 0; i < 113; i++) {
		kept = malloc(79);
		swapcontext(&routine, &caller);
	}
}

static void coroutines(void)
{
	getcontext(&routine);
	routine.uc_stack.ss_sp = malloc(65536);
	routine.uc_stack.ss_size = 65536;
	routine.uc_link = &caller;
	makecontext(&routine, coroutine, 0);
	int turns = 0;
	for (; turns < 113; turns++)
		swapcontext(&caller, &routine);
	printf("%d turns\n", turns);
}

static void queued(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, &old);
	for (int i = 0; i < 31; i++)
		sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
	unsigned int sum = 0;
	for (int i = 0; i < 31; i++) {
		siginfo_t info;

		sigwaitinfo(&set, &info);
		sum = 3 * sum + (unsigned int)info.si_value.sival_int;
	}
	printf("in order %u\n", sum);
}

static void stopped_child(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		raise(SIGSTOP);
		_exit(17);
	}
	waitpid(child, &status, WUNTRACED);
	printf("stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
	kill(child, SIGCONT);
	waitpid(child, &status, 0);
	printf("status %d\n", WEXITSTATUS(status));
}

static void broken_pipe(void)
{
	int ends[2];

	if (pipe(ends))
		fail("no pipe");
	close(ends[0]);
	on(SIGPIPE, count, 0);
	int written = (int)write(ends[1], "x", 1);
	printf("wrote %d, %d signals\n", written, (int)seen);
}

static void without_core(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	puts("to the end");
	fflush(stdout);
}

static void aborts(void)
{
	without_core();
	abort();
}

static void divides(void)
{
	without_core();
	volatile int zero = 0;
	zero = 100 / zero;
}

static void terminated(void)
{
	without_core();
	raise(SIGTERM);
}

static void trapped(void)
{
	without_core();
	__asm__ volatile("int3");
}

static const struct behaviour behaviours[] = {
	{"alarm_storm", alarm_storm}, {"profile_timer", profile_timer}, {"alternate_stack", alternate_stack},
	{"recover", recover}, {"own_traps", own_traps}, {"undefined_instruction", undefined_instruction},
	{"coroutines", coroutines}, {"queued", queued}, {"stopped_child", stopped_child},
	{"broken_pipe", broken_pipe}, {"aborts", aborts}, {"divides", divides},
	{"terminated", terminated}, {"trapped", trapped},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
