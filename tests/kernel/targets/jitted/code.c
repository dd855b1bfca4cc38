/* What gdbjit.c loads and runs: two functions without frame pointers, whose own names are NAME's. */
#define GLUE(a, b) a##b
#define NAMED(a, b) GLUE(a, b)

typedef void *(*allocator)(unsigned long);

static __attribute__((__noinline__, __noclone__)) void *NAMED(leak_, NAME)(allocator allocate, unsigned long size)
{
	volatile char room[200];
	void *block;

	room[0] = 1;
	block = allocate(size);
	room[1] = room[0];
	return block;
}

void *NAMED(enter_, NAME)(allocator allocate, unsigned long size)
{
	volatile char room[100];
	void *block;

	room[0] = 1;
	block = NAMED(leak_, NAME)(allocate, size);
	room[1] = room[0];
	return block;
}
