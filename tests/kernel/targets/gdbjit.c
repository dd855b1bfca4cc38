/*
 * A JIT that tells gdb of its code. It loads objects made of jitted/code.c, all at one address, one after the other:
 *   gdbjit OBJECT...          registers each, leaks 11 x 307 in the first, 13 x 311 in the second ..., and takes it back
 *   gdbjit many N OBJECT      registers and takes back N times, then leaks 11 x 307
 *   gdbjit late OBJECT        registers before "ready"; leaks 11 x 307 after a byte
 *   gdbjit beam OBJECT...     as the first, but tells of it as Erlang's BeamAsm does: code:made_0/0, code:made_1/0 ...
 */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "target.h"

struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
} __jit_debug_descriptor = { 1, 0, NULL, NULL };

NOINLINE void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

typedef void *(*entry_function)(void *(*)(size_t), size_t);

static char *room;
static struct jit_code_entry entry;
static const size_t counts[] = { 11, 13, 17, 19 }, sizes[] = { 307, 311, 313, 317 };

/* Read an object, copy its code and its call frames to where they run, and say so in its section headers. */
static entry_function load(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY);
	char *data;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;
	entry_function found = NULL;

	if (fd < 0 || fstat(fd, &status))
		fail("no object");
	data = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	header = (Elf64_Ehdr *)data;
	sections = (Elf64_Shdr *)(data + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		const char *name = data + sections[header->e_shstrndx].sh_offset + sections[i].sh_name;
		size_t at = is(name, ".text") ? 0 : is(name, ".eh_frame") ? PAGE : 2 * PAGE;

		if (at == 2 * PAGE)
			continue;
		memcpy(room + at, data + sections[i].sh_offset, sections[i].sh_size);
		sections[i].sh_addr = (uint64_t)(room + at);
	}
	for (int i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(data + sections[i].sh_offset);

		for (size_t j = 0; sections[i].sh_type == SHT_SYMTAB && j < sections[i].sh_size / sizeof(*symbols); j++)
			if (ELF64_ST_BIND(symbols[j].st_info) == STB_GLOBAL)
				found = (entry_function)(room + symbols[j].st_value);
	}
	if (!found)
		fail("no entry");
	entry.symfile_addr = data;
	entry.symfile_size = status.st_size;
	return found;
}

static char *put(char *at, const void *value, size_t size)
{
	memcpy(at, value, size);
	return at + size;
}

static char *put_word(char *at, uint32_t value)
{
	return put(at, &value, sizeof(value));
}

/* A name's length is before it; a struct of so many bytes begins at `from`, which the name follows in memory. */
static char *put_name(char *at, const char *name, const char *from, size_t size)
{
	uint16_t length = strlen(name) + 1;

	at = put(at, &length, sizeof(length));
	memcpy(at, name, length);
	return (char *)from + size + length;
}

/* Tell of the page of code as of one function with one line (erts/emulator/beam/jit/beam_jit_metadata.cpp). */
static void describe_as_beam(int number)
{
	static char image[256];
	char name[] = "code:made_0/0", *at = image, *from;
	uint64_t base = (uint64_t)room;

	memset(image, 0, sizeof(image));
	name[sizeof("code:made_") - 1] += number;
	at = put_word(put_word(at, 1), 0);
	at = put(at, &base, sizeof(base));
	at = put_word(put_word(at, 1), PAGE);
	at = put_name(at, "code", image, 32);
	from = at;
	at = put_word(put_word(put_word(at, 0), PAGE), 1);
	at = put_name(at, name, from, 16);
	from = at;
	at = put_word(put_word(at, 0), 40 + number);
	at = put_name(at, "code.erl", from, 12);
	entry.symfile_addr = image;
	entry.symfile_size = at - image;
}

static void tell(uint32_t action)
{
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_descriptor.relevant_entry = &entry;
	__jit_debug_descriptor.first_entry = action == 1 ? &entry : NULL;
	__jit_debug_register_code();
}

static NOINLINE void run(entry_function function, size_t number)
{
	for (size_t i = 0; i < counts[number]; i++)
		kept = function(malloc, sizes[number]);
}

int main(int argc, char **argv)
{
	room = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc == 4 && is(argv[1], "many")) {
		entry_function function = load(argv[3]);

		for (int i = 0; i < atoi(argv[2]); i++) {
			tell(1);
			tell(2);
		}
		tell(1);
		run(function, 0);
		return 0;
	}
	if (argc == 3 && is(argv[1], "late")) {
		entry_function function = load(argv[2]);

		tell(1);
		ready();
		run(function, 0);
		return 0;
	}
	if (argc > 2 && is(argv[1], "beam")) {
		for (int i = 2; i < argc; i++) {
			entry_function function = load(argv[i]);

			describe_as_beam(i - 2);
			tell(1);
			run(function, i - 2);
			tell(2);
		}
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		entry_function function = load(argv[i]);

		tell(1);
		run(function, i - 1);
		tell(2);
		munmap((void *)entry.symfile_addr, entry.symfile_size);
	}
	return 0;
}
