/* early_maker FOLDER: a process that forks, writes FOLDER/forked, waits for FOLDER/make, makes a block where another one
 * was freed, writes FOLDER/made, waits for FOLDER/drop, and frees the block. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void *make(void) {
	return malloc(101);
}

__attribute__((noinline)) static void drop(void *block) {
	free(block);
}

static void say(const char *name) {
	int file = open(name, O_CREAT | O_WRONLY, 0600);

	if (file < 0 || close(file))
		exit(3);
}

static void await(const char *name) {
	while (access(name, F_OK))
		sched_yield();
}

int main(int count, char **arguments) {
	void *block;
	pid_t child;

	if (count != 2 || chdir(arguments[1]))
		return 3;
	drop(make());
	child = fork();
	if (child < 0)
		return 3;
	if (!child)
		_exit(0);
	say("forked");
	await("make");
	block = make();
	say("made");
	await("drop");
	drop(block);
	return waitpid(child, 0, 0) == child ? 0 : 3;
}
