/* One behaviour with threads, processes or memory each: says at its end what it counted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "behaves.h"

extern char **environ;
static pthread_barrier_t begun;
static int cleaned;

static void clean_up(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *sleeps(void *unused)
{
	pthread_cleanup_push(clean_up, NULL);
	pthread_barrier_wait(&begun);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return unused;
}

static void cancels(void)
{
	pthread_barrier_init(&begun, NULL, 2);
	for (int i = 0; i < 101; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, sleeps, NULL);
		pthread_barrier_wait(&begun);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	printf("%d cleaned up\n", cleaned);
}

static void *leaves(void *block)
{
	free(block);
	pthread_exit(malloc(43));
}

static void short_threads(void)
{
	int ended = 0;

	for (int i = 0; i < 503; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, leaves, malloc(41));
		pthread_join(thread, &result);
		ended += result != NULL;
		free(result);
	}
	printf("%d threads\n", ended);
}

static int status_of(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *forks(void *unused)
{
	pid_t child = fork();

	if (!child)
		_exit(malloc(47) ? 19 : 1);
	printf("status %d\n", status_of(child));
	return unused;
}

static void forks_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, forks, NULL);
	pthread_join(thread, NULL);
}

static void vforks(void)
{
	volatile int sum = 0;

	for (volatile int i = 0; i < 11; i++) {
		pid_t child = vfork();

		if (!child) {
			execl("/bin/sh", "sh", "-c", "exit 7", NULL);
			_exit(1);
		}
		sum += status_of(child);
	}
	printf("sum %d\n", sum);
}

static void spawns(void)
{
	char *arguments[] = {"sh", "-c", "echo spawned; exit 23", NULL};
	pid_t child;

	posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
	printf("status %d\n", status_of(child));
}

static int shares(void *place)
{
	*(int *)place = 29;
	return 31;
}

static void clone_vm(void)
{
	char *stack = malloc(65536);
	int place = 0;
	pid_t child = clone(shares, stack + 65536, CLONE_VM | SIGCHLD, &place);
	int status = status_of(child);

	printf("status %d, wrote %d\n", status, place);
}

static void bare_clone3(void)
{
	unsigned long long arguments[8] = {0};

	arguments[4] = SIGCHLD;
	long child = syscall(SYS_clone3, arguments, sizeof(arguments));
	if (!child)
		syscall(SYS_exit_group, 37);
	printf("status %d\n", status_of((pid_t)child));
}

static void seccomp_filter(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {COUNT(rules), rules};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	long result = syscall(SYS_getppid);
	printf("%ld, right error %d\n", result, errno == EXDEV);
}

static void seccomp_strict(void)
{
	static const char text[] = "write is left\n";

	/* Makes the heap: brk is forbidden afterwards. */
	free(malloc(53));
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	free(malloc(53));
	(void)!write(1, text, sizeof(text) - 1);
	syscall(SYS_exit, 41);
}

static void not_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	printf("%d %d\n", prctl(PR_GET_DUMPABLE), malloc(59) != NULL);
}

static void other_user(void)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		fail("cannot leave root");
	printf("%d, again root %d\n", (int)getuid(), setuid(0));
}

static void limits(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){13, 13});
	int last = -1;
	for (int at; (at = open("/dev/null", O_RDONLY)) >= 0;)
		last = at;
	printf("last %d\n", last);
	setrlimit(RLIMIT_AS, &(struct rlimit){1 << 28, 1 << 28});
	printf("%d\n", malloc(1 << 29) == NULL);
}

static void small_stack(void)
{
	char *arguments[] = {"/bin/sh", "-c", "ulimit -s", NULL};

	setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 18, 1 << 18});
	execv(arguments[0], arguments);
}

static NOINLINE int depth(int left)
{
	char *block = malloc(17);
	int below = left ? depth(left - 1) : 0;

	free(block);
	return below + 1;
}

static void deep_recursion(void)
{
	printf("depth %d\n", depth(50000));
}

static void inherited(void)
{
	char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	gone[0] = 61;
	madvise(gone, 4096, MADV_WIPEONFORK);
	pid_t child = fork();
	if (!child)
		_exit(gone[0]);
	printf("parent %d, child %d\n", gone[0], status_of(child));
}

static void usable_sizes(void)
{
	unsigned long sum = 0;

	for (size_t size = 1; size < 100000; size += 977) {
		void *block = malloc(size), *other = aligned_alloc(256, 256 * (size / 256 + 1));

		sum = 31 * sum + malloc_usable_size(block) + malloc_usable_size(other);
		block = realloc(block, size * 2);
		sum += malloc_usable_size(block) + (unsigned long)other % 256;
		free(block);
		free(other);
	}
	struct mallinfo2 info = mallinfo2();
	printf("%lu, in use %zu of %zu, %d\n", sum, info.uordblks, info.arena, malloc_trim(0));
}

static void own_status(void)
{
	static const char *const wanted[] = {"Umask:", "TracerPid:", "Uid:", "Groups:", "Threads:", "SigPnd:", "ShdPnd:",
		"SigBlk:", "SigIgn:", "SigCgt:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Cpus_allowed:"};
	char line[4096];
	FILE *status = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), status))
		for (size_t i = 0; i < COUNT(wanted); i++)
			if (!strncmp(line, wanted[i], strlen(wanted[i])))
				fputs(line, stdout);
	printf("personality %x, dumpable %d\n", personality(0xffffffff), prctl(PR_GET_DUMPABLE));
}

static void open_files(void)
{
	for (int at = 0; at < 1024; at++) {
		int flags = fcntl(at, F_GETFD);

		if (flags >= 0)
			printf("%d flags %d, mode %x\n", at, flags, fcntl(at, F_GETFL));
	}
}

static void own_limits(void)
{
	for (int which = 0; which < RLIM_NLIMITS; which++) {
		struct rlimit limit;

		getrlimit(which, &limit);
		printf("%d: %lu %lu\n", which, limit.rlim_cur, limit.rlim_max);
	}
}

static void first_exit(void)
{
	puts("registered first, run last");
}

static void second_exit(void)
{
	puts("registered last, run first");
}

static void exit_order(void)
{
	atexit(first_exit);
	atexit(second_exit);
}

static const struct behaviour behaviours[] = {
	{"cancels", cancels}, {"short_threads", short_threads}, {"forks_in_thread", forks_in_thread}, {"vforks", vforks},
	{"spawns", spawns}, {"clone_vm", clone_vm}, {"bare_clone3", bare_clone3}, {"seccomp_filter", seccomp_filter},
	{"seccomp_strict", seccomp_strict}, {"not_dumpable", not_dumpable}, {"other_user", other_user},
	{"limits", limits}, {"small_stack", small_stack}, {"deep_recursion", deep_recursion}, {"inherited", inherited},
	{"usable_sizes", usable_sizes}, {"own_status", own_status}, {"open_files", open_files},
	{"own_limits", own_limits}, {"exit_order", exit_order},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
