/* same_slot N DISTANCE: fork N children whose number is one to four DISTANCEs from this process's own; say how many, and
 * the longest time from a fork to the child's end, in milliseconds. Needs root, and /proc/sys/kernel/ns_last_pid. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int distance = atoi(argv[2]), wanted, found = 0, missed = 0;
	double longest = 0;

	if (getpid() + 4 * distance > 32000)
		distance = -distance;
	wanted = getpid() + distance;
	for (int attempt = 0; found < atoi(argv[1]) && attempt < 1000; attempt++) {
		FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
		double before;
		pid_t pid;

		if (!file)
			return 2;
		fprintf(file, "%d", wanted - 1);
		fclose(file);
		before = now();
		pid = fork();
		if (pid == 0) {
			free(malloc(77));
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		found += pid == wanted;
		if (pid == wanted && now() - before > longest)
			longest = now() - before;
		if (pid != wanted && ++missed % 20 == 0) /* a thread of somebody has the number */
			wanted = getpid() + (missed / 20 % 4 + 1) * distance;
	}
	printf("%d %.0f\n", found, longest);
	return 0;
}
