/*
 * Each case but "correct" frees one block in a way that its maker does not
 * allow. With -DOWN the program has operators of its own, over malloc.
 */
#include <cstdlib>
#include <cstring>
#include <new>

#define NOINLINE __attribute__((noinline))

#ifdef OWN
NOINLINE void *operator new(size_t size) { return malloc(size + 16); }
NOINLINE void *operator new[](size_t size) { return malloc(size + 16); }
NOINLINE void operator delete(void *block) noexcept { free(block); }
NOINLINE void operator delete[](void *block) noexcept { free(block); }
NOINLINE void operator delete(void *block, size_t) noexcept { free(block); }
NOINLINE void operator delete[](void *block, size_t) noexcept { free(block); }
#endif

using Alignment = std::align_val_t;
struct Item {
	char room[24];
	~Item() { asm volatile("" : : : "memory"); }
};
struct alignas(64) Wide { char room[192]; };

NOINLINE void *make() { return new int(7); }
NOINLINE void *make_array() { return new int[13]; }
NOINLINE void *make_c() { return malloc(101); }
NOINLINE void *make_quietly() { return new (std::nothrow) int[17]; }
NOINLINE void *make_wide() { return new Wide; }
NOINLINE void *make_aligned() { return aligned_alloc(64, 192); }
NOINLINE void drop(void *block) { delete static_cast<int *>(block); }
NOINLINE void drop_array(void *block) { delete[] static_cast<int *>(block); }
NOINLINE void drop_c(void *block) { free(block); }
NOINLINE void drop_sized(void *block, size_t size) { ::operator delete(block, size); }
NOINLINE void drop_aligned(void *block, size_t alignment) { ::operator delete(block, Alignment(alignment)); }
NOINLINE void grow(void *block) { free(realloc(block, 5003)); }

static void correct()
{
	drop(make());
	drop_array(make_array());
	drop_array(make_quietly());
	drop_c(make_c());
	drop_c(make_aligned());
	grow(make_c());
	drop_c(reallocarray(nullptr, 3, 7));
	delete static_cast<Wide *>(make_wide());
	drop_aligned(::operator new(64, Alignment(64)), 64);
	drop_sized(::operator new(41), 41);
	drop_sized(::operator new(0), 0);
	delete[] new Item[3];
	delete[] new Wide[2];
	drop(nullptr);
}

int main(int, char **arguments)
{
	const char *what = arguments[1];
	auto is = [what](const char *wanted) { return !strcmp(what, wanted); };

	if (is("new-free")) drop_c(make());
	if (is("array-free")) drop_c(make_array());
	if (is("array-delete")) drop(make_array());
	if (is("nothrow-array-delete")) drop(make_quietly());
	if (is("new-array-delete")) drop_array(make());
	if (is("malloc-delete")) drop(make_c());
	if (is("malloc-array-delete")) drop_array(make_c());
	if (is("new-realloc")) grow(make());
	if (is("aligned-alloc-delete")) drop_aligned(make_aligned(), 64);
	if (is("wide-delete")) drop(make_wide());
	if (is("wide-free")) drop_c(make_wide());
	if (is("size")) drop_sized(::operator new(41), 43);
	if (is("alignment")) drop_aligned(::operator new(64, Alignment(64)), 128);
	if (is("often"))
		for (int i = 0; i < 1009; i++)
			drop_c(make());
	if (is("rarely"))
		for (int i = 0; i < 1009; i++)
			i == 997 ? drop_c(make()) : drop(make());
	correct();
	return 0;
}
