/* The target of ledger.refleak: counted accounts of which 3 leak, one put too many, pages that leak, a child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "refleak.h"

struct account {
	int refs;
	char *owner;
};

static struct account *open_account(const char *owner)
{
	struct account *account = malloc(sizeof(*account));

	account->owner = strdup(owner);
	refcnt__init(account, refs, 1);
	return account;
}

static void close_account(struct account *account)
{
	if (refcnt__put(account, refs)) {
		free(account->owner);
		free(account);
	}
}

static void audit(struct account *account, int forget)
{
	refcnt__get(account, refs);
	if (!forget)
		close_account(account);
}

static void over_put(void)
{
	static struct account account;

	refcnt__init(&account, refs, 1);
	refcnt__put(&account, refs);
	refcnt__put(&account, refs);
}

int main(void)
{
	void *page = NULL;

	for (int i = 0; i < 11; i++) {
		struct account *account = open_account(i % 2 ? "odd" : "even");

		audit(account, i % 4 == 1);
		close_account(account);
	}
	for (int i = 0; i < 5; i++)
		page = malloc(4096 + i);
	memset(page, 0, 4096);
	over_put();
	if (fork() == 0)
		_exit(malloc(101) == NULL);
	wait(NULL);
	mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%p\n", page);
	return 0;
}
