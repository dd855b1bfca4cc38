/* One behaviour with processes and their surroundings each: says at its end what it counted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "behaves.h"

enum { MANY = 53 };

static int status_of(pid_t child)
{
	int status = 0;

	waitpid(child, &status, 0);
	return status;
}

/* Runs a part in a child; returns its wait status. */
static int in_child(void (*part)(void))
{
	pid_t child = fork();

	if (!child) {
		part();
		_exit(7);
	}
	return status_of(child);
}

static void traced_by_parent(void)
{
	pid_t child = fork();
	int calls = 0, status;

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		for (int i = 0; i < MANY; i++)
			syscall(SYS_getppid);
		_exit(7);
	}
	status_of(child);
	for (;;) {
		struct user_regs_struct registers;

		ptrace(PTRACE_SYSCALL, child, NULL, NULL);
		status = status_of(child);
		if (!WIFSTOPPED(status))
			break;
		ptrace(PTRACE_GETREGS, child, NULL, &registers);
		calls += registers.orig_rax == SYS_getppid;
	}
	printf("%d stops, status %x\n", calls, status);
}

static void seized(void)
{
	int ends[2], status;
	pid_t child;
	char byte;

	if (pipe(ends))
		fail("pipe");
	child = fork();
	if (!child) {
		read(ends[0], &byte, 1);
		free(malloc(41));
		_exit(9);
	}
	ptrace(PTRACE_SEIZE, child, NULL, (void *)PTRACE_O_TRACEEXIT);
	ptrace(PTRACE_INTERRUPT, child, NULL, NULL);
	status = status_of(child);
	printf("stopped %d\n", WIFSTOPPED(status));
	write(ends[1], "x", 1);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	for (status = status_of(child); WIFSTOPPED(status); status = status_of(child)) {
		printf("event %d\n", status >> 16);
		ptrace(PTRACE_CONT, child, NULL, NULL);
	}
	printf("status %x\n", status);
}

static void single_steps(void)
{
	pid_t child = fork();
	int steps = 0, status;

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		free(malloc(31));
		_exit(7);
	}
	for (status = status_of(child); WIFSTOPPED(status) && steps < 100000; status = status_of(child)) {
		steps++;
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
	}
	printf("more than 100 steps: %d, status %x\n", steps > 100, status);
}

static void crash(void)
{
	struct rlimit all = {0, RLIM_INFINITY};

	setrlimit(RLIMIT_CORE, &all);
	*(volatile int *)8 = 1;
}

static void child_crashes(void)
{
	int status = in_child(crash);

	printf("signal %d\n", WTERMSIG(status));
}

static void use_too_much(void)
{
	struct rlimit few = {1 << 26, 1 << 26};

	setrlimit(RLIMIT_AS, &few);
	for (int i = 0; i < 100; i++)
		if (!(kept = malloc(1 << 22)))
			_exit(11);
}

static void address_space(void)
{
	printf("status %x\n", in_child(use_too_much));
}

static void fork_too_often(void)
{
	struct rlimit few = {1, 1};
	int failed = 0;

	setrlimit(RLIMIT_NPROC, &few);
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(3);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child < 0)
			failed++;
		else
			status_of(child);
	}
	_exit(failed ? 12 : 13);
}

static void process_limit(void)
{
	printf("status %x\n", in_child(fork_too_often));
}

static void no_new_privileges(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	pid_t child = fork();

	if (!child)
		execl("/bin/sh", "sh", "-c", "grep NoNewPrivs /proc/self/status; exit 8", NULL);
	printf("status %x\n", status_of(child));
}

static void fixed_addresses(void)
{
	int old = personality(0xffffffff);

	if (!(old & ADDR_NO_RANDOMIZE)) {
		personality(old | ADDR_NO_RANDOMIZE);
		execl("/proc/self/exe", "behaves_system", "fixed_addresses", NULL);
	}
	printf("%p %p\n", (void *)fixed_addresses, (void *)&old);
}

static void executes_from_memory(void)
{
	int file = memfd_create("script", 0), source = open("/bin/echo", O_RDONLY);
	char *words[] = {"echo", "from memory", NULL}, *none[] = {NULL};
	pid_t child;

	while (sendfile(file, source, NULL, 1 << 20) > 0)
		;
	child = fork();
	if (!child) {
		fexecve(file, words, none);
		_exit(1);
	}
	printf("status %x\n", status_of(child));
}

static void *executes(void *unused)
{
	execl("/bin/sh", "sh", "-c", "echo from a thread; exit 5", NULL);
	return unused;
}

static void executes_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, executes, NULL);
	pthread_join(thread, NULL);
}

static void vforks_and_executes(void)
{
	volatile int sum = 0;

	for (volatile int i = 0; i < MANY; i = i + 1) {
		pid_t child = vfork();

		if (!child) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		sum = sum + (status_of(child) == 0);
	}
	printf("%d ran\n", sum);
}

static void fork_chain(void)
{
	for (int depth = 0; depth < 17; depth++) {
		pid_t child = fork();

		if (child) {
			if (depth)
				_exit(WEXITSTATUS(status_of(child)) + 1);
			printf("%d generations\n", WEXITSTATUS(status_of(child)));
			return;
		}
		kept = malloc(37);
	}
	_exit(1);
}

static void orphans(void)
{
	char text[8] = "";
	int ends[2], got = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (pipe(ends))
		fail("pipe");
	if (!fork()) {
		if (!fork()) {
			write(ends[1], "x", 1);
			_exit(3);
		}
		_exit(2);
	}
	for (int status; wait(&status) > 0;)
		got += WEXITSTATUS(status);
	read(ends[0], text, 1);
	printf("%d from both, %s\n", got, text);
}

static volatile char dispatches;
static volatile int dispatched;

static void in_place_of_a_call(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	dispatches = SYSCALL_DISPATCH_FILTER_ALLOW;
	dispatched++;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 77;
}

/* Makes a signal of each system call, as Wine does: malloc makes none. */
static void user_dispatch(void)
{
	struct sigaction action = {.sa_sigaction = in_place_of_a_call, .sa_flags = SA_SIGINFO};
	void *before = malloc(97), *within;
	long result;

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &dispatches))
		fail("prctl");
	dispatches = SYSCALL_DISPATCH_FILTER_BLOCK;
	within = malloc(MANY);
	free(before);
	result = syscall(SYS_getppid);
	dispatches = SYSCALL_DISPATCH_FILTER_ALLOW;
	free(within);
	printf("%d signal, %ld\n", dispatched, result);
}

static const struct behaviour behaviours[] = {
	{"traced_by_parent", traced_by_parent}, {"seized", seized}, {"single_steps", single_steps},
	{"child_crashes", child_crashes}, {"address_space", address_space}, {"process_limit", process_limit},
	{"no_new_privileges", no_new_privileges}, {"fixed_addresses", fixed_addresses},
	{"executes_from_memory", executes_from_memory}, {"executes_in_thread", executes_in_thread},
	{"vforks_and_executes", vforks_and_executes}, {"fork_chain", fork_chain}, {"orphans", orphans},
	{"user_dispatch", user_dispatch},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
