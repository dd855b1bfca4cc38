/*
 * A connection cache that leaks in two ways, for `make demo`:
 *   - a query that fails keeps the reference that it got (query_run);
 *   - the log line of a slow query is never freed (log_slow).
 * All else is clean.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../refleak.h"

#define HOSTS 7
#define QUERIES 100

struct conn {
	int refs;
	char *host;
	struct conn *next;
};

struct cache {
	struct conn *conns;
};

static struct conn *conn_new(const char *host)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL || (conn->host = strdup(host)) == NULL)
		exit(1);
	refcnt__init(conn, refs, 1);
	return conn;
}

static __attribute__((__noinline__)) struct conn *conn_get(struct conn *conn)
{
	refcnt__get(conn, refs);
	return conn;
}

static __attribute__((__noinline__)) void conn_put(struct conn *conn)
{
	if (!refcnt__put(conn, refs))
		return;
	refcnt__delete(conn);
	free(conn->host);
	free(conn);
}

/* Return a connection to `host` with a reference for the caller; the cache keeps one of its own. */
static __attribute__((__noinline__)) struct conn *cache_find(struct cache *cache, const char *host)
{
	struct conn *conn;

	for (conn = cache->conns; conn != NULL; conn = conn->next)
		if (strcmp(conn->host, host) == 0)
			return conn_get(conn);
	conn = conn_new(host);
	conn->next = cache->conns;
	cache->conns = conn;
	return conn_get(conn);
}

static __attribute__((__noinline__)) void cache_drop(struct cache *cache)
{
	while (cache->conns != NULL) {
		struct conn *conn = cache->conns;

		cache->conns = conn->next;
		conn_put(conn);
	}
}

static __attribute__((__noinline__)) int log_slow(const struct conn *conn, int number)
{
	char *line;

	if (asprintf(&line, "query %d on %s was slow", number, conn->host) < 0)
		exit(1);
	return (int)strlen(line);	/* and who frees the line? */
}

static __attribute__((__noinline__)) int query_run(struct cache *cache, const char *host, int number)
{
	struct conn *conn = cache_find(cache, host);
	char *answer = malloc(64);
	int length;

	if (answer == NULL)
		exit(1);
	length = snprintf(answer, 64, "%s: answer %d", conn->host, number);
	if (number % 20 == 13)
		length += log_slow(conn, number);
	free(answer);
	if (number % 33 == 32)
		return -1;	/* and who puts conn? */
	conn_put(conn);
	return length;
}

int main(void)
{
	struct cache cache = { NULL };
	int failed = 0, length = 0;

	for (int i = 0; i < QUERIES; i++) {
		char host[32];
		int got;

		snprintf(host, sizeof(host), "db%d.example.org", i % HOSTS);
		got = query_run(&cache, host, i);
		if (got < 0)
			failed++;
		else
			length += got;
	}
	cache_drop(&cache);
	printf("%d queries, %d failed, %d bytes\n", QUERIES, failed, length);
	return 0;
}
