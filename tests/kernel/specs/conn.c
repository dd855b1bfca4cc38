/* Reference counts that nobody annotated: nested creates and gets, gets that may fail, a put that frees by a put. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noipa))

struct conn {
	int id;
	int refcnt;
	struct conn *peer;
};

NOINLINE struct conn *conn_ref(struct conn *c)
{
	if (c)
		c->refcnt++;
	return c;
}

/* A get by another name, which gets by the first: counts once. */
NOINLINE struct conn *conn_ref_checked(struct conn *c)
{
	return c->refcnt > 0 ? conn_ref(c) : NULL;
}

NOINLINE void conn_free(struct conn *c)
{
	free(c);
}

NOINLINE void conn_unref(struct conn *c)
{
	if (c && !--c->refcnt) {
		conn_unref(c->peer);
		conn_free(c);
	}
}

/* Its get of itself is the create's own; its get of the peer is real. */
NOINLINE struct conn *conn_new(struct conn *peer)
{
	struct conn *c = calloc(1, sizeof(*c));

	conn_ref(c);
	c->peer = conn_ref(peer);
	return c;
}

NOINLINE int conn_open(struct conn **out, int fail)
{
	if (fail)
		return -1;
	*out = conn_new(conn_new(NULL));
	conn_unref((*out)->peer);
	return 0;
}

NOINLINE struct conn *conn_find(struct conn *c, int id)
{
	return c->id == id ? conn_ref(c) : NULL;
}

static NOINLINE void leak(void)
{
	conn_ref(conn_new(NULL));
}

int main(void)
{
	struct conn *c, *d;

	for (int i = 0; i < 5; i++) {
		c = conn_new(NULL);
		d = conn_new(c);
		conn_ref_checked(c);
		conn_unref(c);
		conn_unref(c);
		conn_unref(d);
	}
	for (int i = 0; i < 3; i++)
		leak();
	conn_open(&c, 1);
	conn_open(&c, 0);
	conn_find(c, 1);
	conn_unref(conn_find(c, 0));
	conn_unref(c);
	return 0;
}
