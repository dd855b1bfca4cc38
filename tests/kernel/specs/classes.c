/* Objects that point to their class; a child does the same in its own address space. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))

struct obj_class {
	const char *name;
	void (*end)(struct obj_class *);
};

struct obj {
	long reserved;
	const struct obj_class *klass;
	int refs;
};

static const struct obj_class neighbours[2] = { { "first" }, { "second" } };
static const struct obj_class file_class = { "file" };
const struct obj_class socket_class = { "socket" };

NOINLINE struct obj *obj_new(const struct obj_class *klass)
{
	struct obj *o = calloc(1, sizeof(*o));

	o->klass = klass;
	o->refs = 1;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	o->refs++;
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (!--o->refs)
		free(o);
}

static NOINLINE void work(void)
{
	for (int i = 0; i < 3; i++) {
		obj_put(obj_new(&file_class));
		obj_get(obj_new(&socket_class));
	}
}

int main(void)
{
	static struct obj_class *made;

	work();
	if (!fork()) {
		work();
		_exit(0);
	}
	wait(0);
	made = malloc(sizeof(*made));
	obj_put(obj_new(NULL));
	obj_put(obj_new(made));
	obj_put(obj_new(&neighbours[1]));
	obj_put(obj_new((void *)8));
	return 0;
}
