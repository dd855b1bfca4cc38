/* One behaviour with descriptors and memory that processes share each: says at its end what it counted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "behaves.h"

enum { MANY = 53 };

static int status_of(pid_t child)
{
	int status = 0;

	waitpid(child, &status, 0);
	return status;
}

static void handles_of_processes(void)
{
	int sum = 0;

	for (int i = 0; i < MANY; i++) {
		pid_t child = fork();
		siginfo_t info;
		int handle;

		if (!child)
			_exit(i);
		handle = (int)syscall(SYS_pidfd_open, child, 0);
		poll(&(struct pollfd){.fd = handle, .events = POLLIN}, 1, -1);
		waitid(P_PIDFD, handle, &info, WEXITED);
		sum += info.si_status;
		close(handle);
	}
	printf("%d\n", sum);
}

static void descriptors_of_signals(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd, sum = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, 0);
	for (int i = 0; i < MANY; i++) {
		pid_t child = fork();

		if (!child)
			_exit(3);
		read(fd, &info, sizeof(info));
		sum += (pid_t)info.ssi_pid == child && info.ssi_status == 3;
		status_of(child);
	}
	printf("%d of %d\n", sum, MANY);
}

static void events(void)
{
	struct itimerspec soon = {{0, 100000}, {0, 100000}};
	struct epoll_event event = {.events = EPOLLIN};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), counter = eventfd(0, 0), queue = epoll_create1(0), sum = 0;
	uint64_t number;

	timerfd_settime(timer, 0, &soon, NULL);
	epoll_ctl(queue, EPOLL_CTL_ADD, timer, &event);
	for (int i = 0; i < MANY; i++) {
		epoll_wait(queue, &event, 1, -1);
		read(timer, &number, sizeof(number));
		number = 1;
		write(counter, &number, sizeof(number));
	}
	read(counter, &number, sizeof(number));
	sum = (int)number;
	printf("%d\n", sum);
}

static void watches_files(void)
{
	char buffer[4096];
	int queue = inotify_init1(0), file;
	ssize_t size;

	inotify_add_watch(queue, ".", IN_CREATE | IN_CLOSE_WRITE | IN_DELETE);
	file = open("watched", O_CREAT | O_WRONLY, 0600);
	close(file);
	unlink("watched");
	size = read(queue, buffer, sizeof(buffer));
	for (char *at = buffer; at < buffer + size; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
		printf("%x %s\n", ((struct inotify_event *)at)->mask, ((struct inotify_event *)at)->name);
}

static void passes_descriptors(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {"x", 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int ends[2], sum = 0;

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	for (int i = 0; i < MANY; i++) {
		char byte;
		struct iovec got = {&byte, 1};

		memcpy(CMSG_DATA(&control.header), &ends[0], sizeof(int));
		sendmsg(ends[0], &message, 0);
		message.msg_iov = &got;
		recvmsg(ends[1], &message, 0);
		message.msg_iov = &part;
		sum += close(*(int *)CMSG_DATA(&control.header)) == 0;
	}
	printf("%d passed\n", sum);
}

static void terminal(void)
{
	char buffer[256] = "";
	int master, status;
	pid_t child = forkpty(&master, NULL, NULL, NULL);

	if (!child) {
		printf("terminal %d\n", isatty(0));
		_exit(6);
	}
	for (size_t at = 0; at < sizeof(buffer) - 1;) {
		ssize_t size = read(master, buffer + at, sizeof(buffer) - 1 - at);

		if (size <= 0)
			break;
		at += (size_t)size;
	}
	status = status_of(child);
	printf("%s, status %x\n", strtok(buffer, "\r\n"), status);
}

static void other_memory(void)
{
	static volatile int number = 77;
	int ends[2], seen = 0;
	pid_t child;
	struct iovec here = {&seen, sizeof(seen)}, there = {(void *)&number, sizeof(number)};
	char byte;

	if (pipe(ends))
		fail("pipe");
	child = fork();
	if (!child) {
		read(ends[0], &byte, 1);
		_exit(0);
	}
	process_vm_readv(child, &here, 1, &there, 1, 0);
	write(ends[1], "x", 1);
	status_of(child);
	printf("%d read\n", seen);
}

static void shared_segments(void)
{
	int segment = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	volatile int *memory = shmat(segment, NULL, 0);
	pid_t child = fork();

	if (!child) {
		memory[0] = 61;
		_exit(0);
	}
	status_of(child);
	printf("%d shared\n", memory[0]);
	shmdt((void *)memory);
	shmctl(segment, IPC_RMID, NULL);
}

static const struct behaviour behaviours[] = {
	{"handles_of_processes", handles_of_processes}, {"descriptors_of_signals", descriptors_of_signals},
	{"events", events}, {"watches_files", watches_files}, {"passes_descriptors", passes_descriptors},
	{"terminal", terminal}, {"other_memory", other_memory}, {"shared_segments", shared_segments},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
