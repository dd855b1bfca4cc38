// new and new[], some never deleted, and exceptions thrown through 20 frames in 4 threads.
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((__noinline__))

struct Thing {
	char bytes[37];
};

static void *volatile kept;
static volatile int returned;

NOINLINE static void leak_new()
{
	kept = new Thing;
}

NOINLINE static void leak_new_array()
{
	kept = new char[41];
}

NOINLINE static void delete_both()
{
	Thing *thing = new Thing;
	char *array = new char[41];

	kept = thing;
	kept = array;
	delete thing;
	delete[] array;
}

NOINLINE static void leak_before_throw()
{
	kept = new char[43];
}

NOINLINE static void descend(int frames, bool leaks)
{
	if (frames > 1)
		descend(frames - 1, leaks);
	else {
		if (leaks)
			leak_before_throw();
		throw 7;
	}
	returned = returned + 1;
}

NOINLINE static void throw_in_thread(bool leaks)
{
	for (int i = 0; i < 13; i++) {
		try {
			descend(20, leaks);
		} catch (int) {
			returned = 0;
		}
	}
}

int main()
{
	for (int i = 0; i < 7; i++)
		leak_new();
	for (int i = 0; i < 5; i++)
		leak_new_array();
	for (int i = 0; i < 11; i++)
		delete_both();
	{
		std::vector<std::thread> threads;

		for (int i = 0; i < 4; i++)
			threads.emplace_back(throw_in_thread, i == 0);
		for (std::thread &thread : threads)
			thread.join();
	}
	return 0;
}
