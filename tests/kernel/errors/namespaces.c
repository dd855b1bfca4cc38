/*
 * Two heaps in one process: a library that is loaded by dlmopen() has a libc, and a heap, of its own. Compiled with
 * -DLIBRARY it is that library. `namespaces LIBRARY [again]`: both make, grow and free blocks in turns, here and in a
 * thread, and the namespace is left; `again`: the library frees one of its blocks twice.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 40, SIZE = 101 };

typedef void (*turn_function)(int again);

#ifdef LIBRARY
#define TURN library_turn
__attribute__((visibility("default")))
#else
#define TURN program_turn
static
#endif
void TURN(int again)
{
	void *volatile blocks[TURNS];

	for (int i = 0; i < TURNS; i++)
		blocks[i] = i % 2 ? malloc(SIZE) : strdup("a word");
	for (int i = 0; i < TURNS; i++)
		blocks[i] = realloc(blocks[i], (size_t)SIZE * (i % 5 + 1));
	for (int i = 0; i < TURNS; i++)
		free(blocks[i]);
	for (int i = 0; i < TURNS; i++)
		blocks[i] = malloc(i % 3 * SIZE);
	for (int i = 0; i < TURNS; i++)
		free(blocks[i]);
	if (again)
		free(blocks[TURNS - 1]);
}

#ifndef LIBRARY
static turn_function library_turn;

static void *in_thread(void *unused)
{
	for (int i = 0; i < 3; i++) {
		program_turn(0);
		library_turn(0);
	}
	return unused;
}

int main(int count, char **arguments)
{
	void *library = count > 1 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW) : NULL;
	pthread_t thread;

	if (!library)
		return 3;
	library_turn = (turn_function)dlsym(library, "library_turn");
	in_thread(NULL);
	if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL))
		return 3;
	in_thread(NULL);
	if (count > 2)
		library_turn(1);
	return dlclose(library);
}
#endif
