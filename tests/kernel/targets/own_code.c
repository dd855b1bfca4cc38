/* Code that the program maps, replaces and takes away itself, at one address; each function leaks its own number of blocks. */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGES 3
#define RX (PROT_READ | PROT_EXEC)
#define RW (PROT_READ | PROT_WRITE)

typedef void *(*leak_t)(void *(*)(size_t));

struct code {
	int fd;
	off_t offset;
	size_t entry[PAGES];	/* from the start of its first page */
};

static struct code a, b;
static char *place, *elsewhere;

static void *must(void *result)
{
	if (result == MAP_FAILED)
		fail("mmap failed");
	return result;
}

static void must_not_fail(int result)
{
	if (result != 0)
		fail("a call on the code failed");
}

static int find_segment(struct dl_phdr_info *info, size_t size, void *data)
{
	struct code *code = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || code->entry[0] < start ||
		    code->entry[0] >= start + segment->p_memsz)
			continue;
		code->offset = segment->p_offset + (code->entry[0] - start);
		return 1;
	}
	return 0;
}

/* Where the functions of a library are in its file; the loader's own mapping of it goes again. */
static void find_code(struct code *code, const char *name, const char *const functions[PAGES])
{
	void *library = dlopen(name, RTLD_NOW);
	struct link_map *map;

	if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		fail("dlopen failed");
	for (int i = 0; i < PAGES; i++)
		code->entry[i] = (size_t)dlsym(library, functions[i]);
	if (!dl_iterate_phdr(find_segment, code))
		fail("no segment has the code");
	for (int i = PAGES - 1; i >= 0; i--)
		code->entry[i] -= code->entry[0];
	code->fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	if (code->fd < 0 || code->offset % PAGE || code->entry[2] != 2 * PAGE)
		fail("the code is not where it was expected");
	dlclose(library);
}

static NOINLINE void call(char *code, int page, int count)
{
	for (int i = 0; i < count; i++)
		kept = ((leak_t)(code + page * PAGE))(malloc);
}

static void map(const struct code *code, int protection, char *at, int page, int pages)
{
	must(mmap(at, pages * PAGE, protection, MAP_PRIVATE | MAP_FIXED, code->fd, code->offset + page * PAGE));
}

/* Map, call and unmap one after the other, each where the last one was. */
static NOINLINE void in_turns(void)
{
	for (int i = 0; i < 5; i++) {
		map(&a, RX, place, 0, PAGES);
		call(place, 0, 7);
		must_not_fail(munmap(place, PAGES * PAGE));
		map(&b, RX, place, 0, PAGES);
		call(place, 0, 11);
		must_not_fail(munmap(place, PAGES * PAGE));
	}
}

/* Map one over the other, the last one over a page in the middle. */
static NOINLINE void one_over_the_other(void)
{
	map(&a, RX, place, 0, PAGES);
	call(place, 0, 7);
	map(&b, RX, place, 0, PAGES);
	call(place, 0, 11);
	map(&a, RX, place, 0, PAGES);
	map(&b, RX, place + PAGE, 1, 1);
	call(place, 0, 13);
	call(place, 1, 17);
	call(place, 2, 19);
}

static NOINLINE void moved(void)
{
	map(&a, RX, place, 0, PAGES);
	call(place, 0, 7);
	must(mremap(place, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere));
	call(elsewhere, 0, 11);
	map(&b, RX, place, 0, PAGES);
	call(place, 0, 13);
	call(elsewhere, 1, 17);
}

/* A file becomes code, is code no longer, and another one becomes code in its place. */
static NOINLINE void made_executable(void)
{
	map(&a, PROT_READ, place, 0, PAGES);
	must_not_fail(mprotect(place, PAGES * PAGE, RX));
	call(place, 0, 7);
	must_not_fail(mprotect(place, PAGES * PAGE, RW));
	must_not_fail(mprotect(place, PAGES * PAGE, RX));
	call(place, 0, 11);
	must_not_fail(mprotect(place, PAGES * PAGE, PROT_READ));
	map(&b, PROT_READ, place, 0, PAGES);
	must_not_fail(mprotect(place, PAGES * PAGE, RX));
	call(place, 0, 13);
}

/* Functions copied to memory of their own, where a library was: they have no name, and not that of the library. */
static NOINLINE void copied(void)
{
	char *from = must(mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, b.fd, b.offset));

	map(&a, RX, place, 0, PAGES);
	call(place, 0, 7);
	must_not_fail(munmap(place, PAGES * PAGE));
	must(mmap(place, PAGES * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memcpy(place, from, PAGES * PAGE);
	for (int i = 0; i < 5; i++) {
		must_not_fail(mprotect(place, PAGES * PAGE, RX));
		call(place, 0, 11);
		must_not_fail(mprotect(place, PAGES * PAGE, RW));
	}
	must(mmap(place, PAGES * PAGE, RW | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memcpy(place, from, PAGES * PAGE);
	call(place, 0, 13);
}

/* Mapped behind the back of libc, whose functions nobody calls. */
static NOINLINE void unseen(void)
{
	for (int turn = 0; turn < 3; turn++) {
		syscall(SYS_mmap, place, PAGES * PAGE, RX, MAP_PRIVATE | MAP_FIXED, a.fd, a.offset);
		call(place, 0, 7);
		usleep(200000);	/* nobody waits for refleak to look */
	}
}

/* What a child does to its code is no affair of its parent's. */
static NOINLINE void in_a_child(void)
{
	int status;
	pid_t child;

	map(&a, RX, place, 0, PAGES);
	call(place, 0, 7);
	child = fork();
	if (child == 0) {
		must_not_fail(munmap(place, PAGES * PAGE));
		map(&b, RX, place, 0, PAGES);
		call(place, 0, 11);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("the child failed");
	call(place, 0, 13);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "turns", in_turns }, { "over", one_over_the_other }, { "mremap", moved },
		{ "mprotect", made_executable }, { "copy", copied }, { "fork", in_a_child },
		{ "unseen", unseen },
	};

	find_code(&a, "libcodea.so", (const char *const[]){ "code_a_0", "code_a_1", "code_a_2" });
	find_code(&b, "libcodeb.so", (const char *const[]){ "code_b_0", "code_b_1", "code_b_2" });
	place = must(mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	elsewhere = place + PAGES * PAGE;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (argc > 1 && is(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	fail("which case?");
}
