/* 5 objects of type "birth": got and put under the name "alias", and left alive. */
#include "target.h"
#include "refleak.h"

static struct thing {
	int refs;
} things[5];

static NOINLINE void create_birth(struct thing *birth)
{
	refcnt__init(birth, refs, 1);
}

static NOINLINE void use_alias(struct thing *alias)
{
	refcnt__get(alias, refs);
	refcnt__put(alias, refs);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(things); i++) {
		create_birth(&things[i]);
		use_alias(&things[i]);
	}
	return 0;
}
