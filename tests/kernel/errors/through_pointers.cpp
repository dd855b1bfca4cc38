/*
 * Blocks and the functions that free them go through pointers, structs and
 * containers. Each case but those that begin with "correct" has one error.
 */
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <vector>

#define NOINLINE __attribute__((noinline))
using Free = void (*)(void *);

struct Operations {
	void *(*make)(size_t);
	Free drop;
};

struct Box {
	Operations *operations;
	void *data;
};

NOINLINE static void *make_c(size_t size) { void *made = malloc(size); return made; }
NOINLINE static void drop_c(void *block) { free(block); asm volatile(""); }
NOINLINE static void drop_plainly(void *block) { ::operator delete(block); asm volatile(""); }
static Operations matching = {make_c, drop_c}, mixed = {make_c, drop_plainly}, plain = {malloc, free};
static volatile Free drop = free;

NOINLINE static void use(Operations *operations)
{
	Box box = {operations, operations->make(101)};

	box.operations->drop(box.data);
}

int main(int, char **arguments)
{
	const char *what = arguments[1];
	auto is = [what](const char *wanted) { return !strcmp(what, wanted); };

	if (is("correct-table")) {
		use(&matching);
		use(&plain);
	} else if (is("correct-deleters")) {
		std::shared_ptr<char> shared(static_cast<char *>(malloc(20)), free);
		std::function<void(void *)> function = drop_plainly;

		function(::operator new(8));
	} else if (is("mismatched-table")) {
		use(&mixed);
	} else if (is("mismatched-container")) {
		std::vector<void *> blocks{malloc(30), malloc(31), malloc(32)};

		for (void *block : blocks)
			drop_plainly(block);
	} else if (is("double-pointer")) {
		void *block = malloc(33);

		drop(block);
		drop(block);
	} else if (is("double-map")) {
		std::map<int, char *> texts;

		texts[1] = texts[2] = strdup("text");
		for (auto &text : texts)
			drop(text.second);
	} else if (is("invalid-pointer")) {
		drop(static_cast<char *>(malloc(64)) + 16);
	} else if (is("invalid-stack")) {
		int number;

		drop(&number);
	}
	return 0;
}
