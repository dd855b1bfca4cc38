/* Functions whose names promise more than they do; see test_trial.py. */
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noipa))
struct conn { int refs; int x; };
struct page { int x; };
struct hat { int refs; };
struct node { struct node *next; };
static struct page first_page;
NOINLINE struct conn *conn_new(void) { struct conn *c = calloc(1, sizeof *c); c->refs = 1; return c; }
NOINLINE struct conn *conn_new_listening(void) { return conn_new(); }
NOINLINE struct conn *conn_new_unused(void) { return conn_new(); }
NOINLINE struct conn *conn_ref(struct conn *c) { c->refs++; return c; }
NOINLINE void conn_unref(struct conn *c) { if (!--c->refs) free(c); }
NOINLINE struct page *page_new_default(void) { return &first_page; }      /* makes nothing */
NOINLINE struct page *page_new(void) { return malloc(sizeof(struct page)); }
NOINLINE void page_free(struct page *p) { free(p); }
NOINLINE struct hat *hat_new(void) { struct hat *h = malloc(sizeof *h); h->refs = 1; return h; }
NOINLINE struct hat *hat_ref(struct hat *h) { return h; }                 /* takes no reference */
NOINLINE void hat_unref(struct hat *h) { free(h); }
NOINLINE struct node *node_new(void) { return malloc(sizeof(struct node)); }
NOINLINE void node_free(struct node *n) { (void)n; }                      /* never called */
struct flag { int x; };
NOINLINE struct flag *flag_new(void) { return calloc(1, sizeof(struct flag)); }
NOINLINE void flag_hold(struct flag *f) { f->x++; }                       /* a get that names do not tell */
NOINLINE void flag_free(struct flag *f) { if (!f->x--) free(f); }
int main(void)
{
	struct flag *flag = flag_new();
	struct conn *kept[3];
	for (int i = 0; i < 3; i++) {
		kept[i] = i ? conn_new() : conn_new_listening();
		conn_ref(kept[i]);
		conn_unref(kept[i]);
		conn_unref(kept[i]);
	}
	for (int i = 0; i < 5; i++) { page_new_default(); page_free(page_new()); }
	for (int i = 0; i < 7; i++) { struct hat *h = hat_new(); hat_ref(h); hat_unref(h); }
	for (int i = 0; i < 2; i++) free(node_new());
	flag_hold(flag);
	flag_free(flag);
	flag_free(flag);
	puts("done");
	return 0;
}
