/* Version 1 or 2 of a library that counts references: its stubs stand at the same places in both, and one of them begins
 * with another instruction, by which it tells its version. */
#include "target.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define TYPE_OF(version) "object of " #version
#define TYPE(version) TYPE_OF(version)

__asm__(".pushsection .text.stubs, \"ax\", @progbits\n"
	".p2align 12\n"
	".globl __refcnt__put\n"
	".type __refcnt__put, @function\n"
	"__refcnt__put: mov $" TEXT(VERSION) ", %eax\n"
	"lock decl (%rdi)\n"
	"ret\n"
	".size __refcnt__put, . - __refcnt__put\n"
	".p2align 8\n"
	".globl __refcnt__init\n"
	".type __refcnt__init, @function\n"
	"__refcnt__init: mov %esi, (%rdi)\n"
	"ret\n"
	".size __refcnt__init, . - __refcnt__init\n"
	".popsection\n");
int __refcnt__put(int *refcnt, void *obj, const char *name);
void __refcnt__init(int *refcnt, int n, void *obj, const char *name);

/* The types' names are at different places. */
static const char padding[VERSION * 4096] __attribute__((__used__, __section__(".rodata.before"))) = {1};
static const char type[] __attribute__((__section__(".rodata.name"))) = TYPE(VERSION);
static int *objects;

static __attribute__((__constructor__)) void construct(void)
{
	objects = malloc(8 * sizeof(*objects));
	kept = (void *)(uintptr_t)*(volatile const char *)type;	/* whose page is in memory from now on */
	for (size_t i = 0; i < 8; i++)
		__refcnt__init(&objects[i], 1, &objects[i], type);
}

int version(void);

NOINLINE int version(void)
{
	int said = 0;

	for (int i = 0; i < (VERSION == 1 ? 3 : 5); i++)
		said += __refcnt__put(&objects[i], &objects[i], type);
	return 10 * said + VERSION;
}
