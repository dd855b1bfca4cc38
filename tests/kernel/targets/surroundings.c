/* Prints all that a process gets from whoever started it, one thing per line. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static void print_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	while ((entry = readdir(folder)) != NULL) {
		char path[300], place[300] = "";

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(folder))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, place, sizeof(place) - 1) > 0)
			printf("fd %s %s\n", entry->d_name, place);
	}
	closedir(folder);
}

static void print_signals(void)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int number = 1; number < 65; number++) {
		struct sigaction action;

		if (sigaction(number, NULL, &action) == 0)
			printf("signal %d %s %s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "default",
			       sigismember(&blocked, number) ? "blocked" : "");
	}
}

static void print_file(const char *path, const char *beginnings)
{
	FILE *file = fopen(path, "r");
	char line[1024];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		for (const char *at = beginnings; *at != 0; at += strlen(at) + 1)
			if (strncmp(line, at, strlen(at)) == 0)
				fputs(line, stdout);
	if (file != NULL)
		fclose(file);
}

int main(int argc, char **argv)
{
	char folder[1024];
	mode_t mask = umask(0);
	cpu_set_t cpus;
	int dead = 0, byte;

	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **at = environ; *at != NULL; at++)
		printf("environment %s\n", *at);
	printf("folder %s\n", getcwd(folder, sizeof(folder)));
	printf("umask %o\n", mask);
	print_signals();
	print_descriptors();
	for (int which = 0; which < RLIM_NLIMITS; which++) {
		struct rlimit limit;

		if (getrlimit(which, &limit) == 0)
			printf("limit %d %llu %llu\n", which, (unsigned long long)limit.rlim_cur,
			       (unsigned long long)limit.rlim_max);
	}
	printf("nice %d policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
	sched_getaffinity(0, sizeof(cpus), &cpus);
	printf("cpus %d\n", CPU_COUNT(&cpus));
	printf("group %s\n", getpgrp() == getpid() ? "own" : getpgrp() == getpgid(getppid()) ? "parent's" : "other");
	printf("session %s\n", getsid(0) == getsid(getppid()) ? "parent's" : "other");
	printf("personality %lx\n", (unsigned long)personality(0xffffffff));
	prctl(PR_GET_PDEATHSIG, &dead);
	printf("parent death signal %d dumpable %d\n", dead, prctl(PR_GET_DUMPABLE));
	print_file("/proc/self/status", "Uid\0Gid\0Groups\0Cap\0NoNewPrivs\0Seccomp:\0THP_enabled\0TracerPid\0Umask\0");
	print_file("/proc/self/oom_score_adj", "-\0" "0\0" "1\0");
	while ((byte = getchar()) != EOF)
		putchar(byte);
	fprintf(stderr, "on stderr\n");
	return 23;
}
