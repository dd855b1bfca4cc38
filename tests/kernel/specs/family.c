/* Two types that one line describes, the counter of each elsewhere; car__get has no put. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noipa))

struct apple { int refcnt; };
struct pear { long weight; int refcnt; };

#define TYPE(type)                                                                                 \
	NOINLINE struct type *type##__new(void)                                                    \
	{                                                                                          \
		struct type *o = calloc(1, sizeof(*o));                                            \
                                                                                                   \
		o->refcnt = 1;                                                                     \
		return o;                                                                          \
	}                                                                                          \
	NOINLINE struct type *type##__get(struct type *o)                                          \
	{                                                                                          \
		o->refcnt++;                                                                       \
		return o;                                                                          \
	}                                                                                          \
	NOINLINE void type##__put(struct type *o)                                                  \
	{                                                                                          \
		if (!--o->refcnt)                                                                  \
			free(o);                                                                   \
	}

TYPE(apple)
TYPE(pear)

NOINLINE int car__get(int number)
{
	return number;
}

/* Copies that no probe covers. */
static inline __attribute__((always_inline)) struct pear *pear__grab(struct pear *p)
{
	p->refcnt++;
	return p;
}

int main(void)
{
	struct apple *a = apple__new();
	struct pear *p = pear__new();

	for (int i = 0; i < 3; i++)
		apple__put(apple__get(a));
	apple__get(a);
	car__get(7);
	pear__put(pear__grab(p));
	pear__put(pear__grab(p));
	pear__put(p);
	return 0;
}
