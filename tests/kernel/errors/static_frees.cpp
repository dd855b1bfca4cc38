/* Correct and bad frees of a program with a C library and operators of its own: static, or with copies of operators. */
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

struct Thing {
	int numbers[25];
};
static pthread_key_t key;

static void *frees_twice(void *block)
{
	free(block);
	free(block);
	return nullptr;
}

static void *leaves_to_keys(void *)
{
	void *blocks[40];

	for (int at = 0; at < 40; at++)
		blocks[at] = malloc(16 + 8 * at);
	for (void *block : blocks)
		free(block);
	pthread_setspecific(key, malloc(33));
	return nullptr;
}

static void run(void *(*work)(void *), void *given)
{
	pthread_t thread;

	pthread_create(&thread, nullptr, work, given);
	pthread_join(thread, nullptr);
}

int main(int, char **arguments)
{
	const char *how = arguments[1];

	pthread_key_create(&key, free);
	if (!strcmp(how, "child-deletes")) {
		Thing *volatile things[] = { new Thing, new Thing[3] };
		int child = fork();

		delete things[0];
		delete[] things[1];
		if (child == 0)
			_exit(0);
		waitpid(child, nullptr, 0);
	} else if (!strcmp(how, "child-deletes-twice")) {
		Thing *volatile thing = new Thing;
		int child = fork();

		delete thing;
		if (child == 0) {
			delete thing;
			_exit(0);
		}
		waitpid(child, nullptr, 0);
	} else if (!strcmp(how, "threads")) {
		for (int turn = 0; turn < 7; turn++)
			run(leaves_to_keys, nullptr);
	} else if (!strcmp(how, "thread-frees-twice")) {
		run(frees_twice, malloc(101));
	} else if (!strcmp(how, "key-of-freed")) {
		void *block = malloc(103);

		run([](void *given) -> void * { return pthread_setspecific(key, given), free(given), nullptr; }, block);
	}
	return 0;
}
