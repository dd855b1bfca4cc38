#include "conn.h"
#include <stdio.h>
#include <stdlib.h>

static int calls;

static struct conn *once(struct conn *conn)
{
	calls++;
	return conn;
}

int main(void)
{
	struct conn *conn = conn_new();
	int puts[5];

	refcnt__get(once(conn), base.refs);
	refcnt__get_by(conn, base.refs, &calls);
	printf("counts %d %d\n", (int)conn->base.refs, conn->users);
	puts[0] = refcnt__put_by(once(conn), base.refs, &calls);
	puts[1] = library_uses(conn);
	puts[2] = refcnt__put(conn, base.refs);
	puts[3] = refcnt__put(conn, base.refs);
	puts[4] = refcnt__put(conn, users);
	printf("puts %d %d %d %d %d\n", puts[0], puts[1], puts[2], puts[3], puts[4]);
	printf("counts %d %d\n", (int)conn->base.refs, conn->users);
	printf("calls %d\n", calls);
#ifndef REFLEAK_DISABLE
	printf("one %d %d\n", put_of_second() == __refcnt__put, put_of_library() == __refcnt__put);
#endif
	refcnt__delete(conn);
	free(conn);
	return 0;
}
