#include "conn.h"
#include <stdlib.h>

struct conn *conn_new(void)
{
	struct conn *conn = (struct conn *)calloc(1, sizeof(*conn));

	refcnt__init(conn, base.refs, 1);
	refcnt__init_as(conn, users, 2, "user");
	return conn;
}

#ifndef REFLEAK_DISABLE
put_function put_of_second(void)
{
	return __refcnt__put;
}
#endif
