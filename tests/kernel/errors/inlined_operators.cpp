/*
 * Operators of the program's own, which a compiler inlines: what frees a block
 * then is a jump to free(), in functions that look as if they freed C's
 * blocks, or the same jump as frees C's. "bad" frees one block of new[] by
 * free(); all else is right.
 */
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static inline void *checked(void *block)
{
	if (!block)
		abort();
	return block;
}
void *operator new(size_t size) { return checked(malloc(size ? size : 1)); }
void *operator new[](size_t size) { return checked(malloc(size ? size : 1)); }
void operator delete(void *block) noexcept { free(block); }
void operator delete[](void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }
void operator delete[](void *block, size_t) noexcept { free(block); }

struct First { virtual ~First() {} int number; };
struct Second { virtual ~Second() {} int number; };
struct Both : First, Second {
	std::string text = std::string(100, 'a');
	char *room = new char[33];
	~Both() override { delete[] room; }
};
struct Virtual : virtual First { std::string text = std::string(101, 'b'); };

NOINLINE static char *make_array(size_t size) { return new char[size]; }
NOINLINE static void drop(First *object) { delete object; }
NOINLINE static void drop_array(char *array) { delete[] array; }
NOINLINE static void drop_c(void *block) { free(block); }

NOINLINE static void drop_on_one_line(int *block, int is_cpp) { is_cpp ? delete block : free(block); }

static volatile int noted;

NOINLINE static void note(int number) { noted += number; }

NOINLINE static void drop_either(int *block, int is_cpp)
{
	if (is_cpp) {
		note(3);
		delete block;
	} else {
		note(4);
		free(block);
	}
}

int main(int count, char **)
{
	std::vector<int> grown;
	std::unique_ptr<Virtual> unique(new Virtual);
	std::shared_ptr<Both> shared(new Both);
	Second *second = new Both, *volatile hidden = new Both;
	First *first = new Virtual;

	for (int i = 0; i < 101; i++)
		grown.push_back(i);
	delete second; /* by a thunk, which adjusts `this` */
	delete hidden;
	delete first;
	drop(new Both);
	drop_array(make_array(50));
	drop_c(malloc(50));
	for (int i = 0; i < 7; i++) {
		drop_either(new int, 1);
		drop_either(static_cast<int *>(malloc(sizeof(int))), 0);
		drop_on_one_line(new int, 1);
		drop_on_one_line(static_cast<int *>(malloc(sizeof(int))), 0);
		note(i);
	}
	if (count > 1)
		drop_c(make_array(53));
	return 0;
}
