#include "conn.h"

int library_uses(struct conn *conn)
{
	refcnt__get(conn, base.refs);
	return refcnt__put(conn, base.refs);
}

#ifndef REFLEAK_DISABLE
put_function put_of_library(void)
{
	return __refcnt__put;
}
#endif
