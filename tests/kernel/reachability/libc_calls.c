/* What calls of libc give to their caller, who drops it: each in a function of its own. */
#define _GNU_SOURCE
#include <argz.h>
#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <locale.h>
#include <mntent.h>
#include <net/if.h>
#include <netdb.h>
#include <obstack.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

#include "leftovers.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
#define MADE(name, ...) \
	__attribute__((noinline)) static void make_##name(void) \
	{ \
		__VA_ARGS__ \
		asm volatile("" ::: "memory"); \
	}

static int compared(const void *a, const void *b)
{
	return strcmp(a, b);
}

MADE(strdup, strdup("abc");)
MADE(strndup, strndup("abcdef", 4);)
MADE(asprintf, char *p; asprintf(&p, "x %d", 3); p = 0;)
MADE(getline, char *l = 0; size_t n = 0; FILE *f = fopen("/etc/passwd", "r"); getline(&l, &n, f); fclose(f); l = 0;)
MADE(fopen_read, FILE *f = fopen("/etc/passwd", "r"); fgetc(f); f = 0;)
MADE(fmemopen, fmemopen(0, 100, "w+");)
MADE(open_memstream, char *b; size_t s; FILE *f = open_memstream(&b, &s); fputs("x", f); fclose(f); b = 0;)
MADE(opendir, opendir("/");)
MADE(scandir, struct dirent **l; scandir("/", &l, 0, 0); l = 0;)
MADE(fdopendir, fdopendir(open("/", 0));)
MADE(realpath, realpath("/usr", 0);)
MADE(getcwd, getcwd(0, 0);)
MADE(getdelim, char *l = 0; size_t n = 0; FILE *f = fopen("/etc/passwd", "r"); getdelim(&l, &n, 58, f); fclose(f);
     l = 0;)
MADE(regcomp, regex_t r; regcomp(&r, "a(b|c)*d", REG_EXTENDED); memset(&r, 0, sizeof r);)
MADE(glob, glob_t g; glob("/*", 0, 0, &g); memset(&g, 0, sizeof g);)
MADE(wordexp, wordexp_t w; wordexp("a b c", &w, 0); memset(&w, 0, sizeof w);)
MADE(getaddrinfo, struct addrinfo *a = 0; getaddrinfo("127.0.0.1", "80", 0, &a); a = 0;)
MADE(tsearch, void *root = 0; tsearch("a", &root, compared); tsearch("b", &root, compared); root = 0;)
MADE(hcreate_r, struct hsearch_data h; memset(&h, 0, sizeof h); hcreate_r(30, &h); memset(&h, 0, sizeof h);)
MADE(backtrace_symbols, void *a[10]; int n = backtrace(a, 10); backtrace_symbols(a, n);)
MADE(posix_memalign, void *p; posix_memalign(&p, 64, 100); p = 0;)
MADE(aligned_alloc, aligned_alloc(64, 128);)
MADE(reallocarray, reallocarray(0, 10, 10);)
MADE(calloc, calloc(3, 7);)
MADE(tempnam, tempnam(0, "x");)
MADE(setenv, setenv("A_B", "c", 1);)
MADE(putenv_heap, putenv(strdup("ABC=1"));)
MADE(wcsdup, wcsdup(L"abc");)
MADE(getpwnam_copy, struct passwd *p = getpwnam("root"); strdup(p->pw_dir);)
MADE(fts_open, char *v[] = { "/etc/apt", 0 }; FTS *f = fts_open(v, FTS_PHYSICAL, 0); fts_read(f); f = 0;)
MADE(getifaddrs, struct ifaddrs *i; getifaddrs(&i); i = 0;)
MADE(if_nameindex, if_nameindex();)
MADE(argz, char *a = 0; size_t n = 0; argz_create_sep("a:b:c", 58, &a, &n); a = 0;)
MADE(obstack, struct obstack o; obstack_init(&o); obstack_copy(&o, "abc", 4); memset(&o, 0, sizeof o);)
MADE(setvbuf, FILE *f = fopen("/etc/passwd", "r"); setvbuf(f, malloc(512), _IOFBF, 512); fgetc(f); fclose(f);)
MADE(posix_spawn_fa, posix_spawn_file_actions_t a; posix_spawn_file_actions_init(&a);
     posix_spawn_file_actions_addopen(&a, 3, "/dev/null", 0, 0); memset(&a, 0, sizeof a);)
MADE(setmntent, FILE *f = setmntent("/proc/mounts", "r"); getmntent(f);)
MADE(newlocale, newlocale(LC_ALL_MASK, "C.UTF-8", 0);)
MADE(duplocale, duplocale(newlocale(LC_ALL_MASK, "C.UTF-8", 0));)
MADE(iconv_open, iconv_open("UTF-16", "UTF-8");)
MADE(iconv_open2, iconv_open("KOI8-R", "UTF-8");)
MADE(setlocale_dup, strdup(setlocale(LC_ALL, "C.UTF-8"));)
MADE(qsort_big, char *b = malloc(100000); qsort(b, 100, 1000, compared);)
MADE(open_wmemstream, wchar_t *b; size_t s; FILE *f = open_wmemstream(&b, &s); f = 0;)
MADE(vasprintf_big, char *p; asprintf(&p, "%5000d", 3); p = 0;)

int main(void)
{
	make_strdup();
	wipe();
	make_strndup();
	wipe();
	make_asprintf();
	wipe();
	make_getline();
	wipe();
	make_fopen_read();
	wipe();
	make_fmemopen();
	wipe();
	make_open_memstream();
	wipe();
	make_opendir();
	wipe();
	make_scandir();
	wipe();
	make_fdopendir();
	wipe();
	make_realpath();
	wipe();
	make_getcwd();
	wipe();
	make_getdelim();
	wipe();
	make_regcomp();
	wipe();
	make_glob();
	wipe();
	make_wordexp();
	wipe();
	make_getaddrinfo();
	wipe();
	make_tsearch();
	wipe();
	make_hcreate_r();
	wipe();
	make_backtrace_symbols();
	wipe();
	make_posix_memalign();
	wipe();
	make_aligned_alloc();
	wipe();
	make_reallocarray();
	wipe();
	make_calloc();
	wipe();
	make_tempnam();
	wipe();
	make_setenv();
	wipe();
	make_putenv_heap();
	wipe();
	make_wcsdup();
	wipe();
	make_getpwnam_copy();
	wipe();
	make_fts_open();
	wipe();
	make_getifaddrs();
	wipe();
	make_if_nameindex();
	wipe();
	make_argz();
	wipe();
	make_obstack();
	wipe();
	make_setvbuf();
	wipe();
	make_posix_spawn_fa();
	wipe();
	make_setmntent();
	wipe();
	make_newlocale();
	wipe();
	make_duplocale();
	wipe();
	make_iconv_open();
	wipe();
	make_iconv_open2();
	wipe();
	make_setlocale_dup();
	wipe();
	make_qsort_big();
	wipe();
	make_open_wmemstream();
	wipe();
	make_vasprintf_big();
	wipe();
	return 0;
}
